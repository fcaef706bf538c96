"""The interfaces between parts. Each protocol has only the methods that its users need."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from pegboard.activity_entries import ActivityEntry, ActivityGroup, ActivityQuery, ActivityTotals, Grouping
from pegboard.audit_entries import AuditEntry
from pegboard.events import Event
from pegboard.habits import Habit, HabitKey
from pegboard.model import (
    Fingerprint,
    Floats,
    JsonObject,
    Outcome,
    Pin,
    Replica,
    Session,
    SigningKey,
    ToolId,
    ToolStatistics,
    Wording,
)
from pegboard.rate_limits import RateMeter
from pegboard.records import Key, Kind, Record
from pegboard.spend_limits import Account, Limits, NanoUsd, Reservation
from pegboard.traffic import Seen

NO_TEXTS: Mapping[ToolId, str] = MappingProxyType({})


class Clock(Protocol):
    def time(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment, never going back."""
        ...


class Encoder(Protocol):
    """Turns texts into unit vectors. ``provider`` and ``model`` name the vector space; spaces are never mixed."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int:
        """Length of a vector; 0 if it is unknown before the first answer."""
        ...

    async def encode(self, texts: Sequence[str]) -> Floats:
        """Float32, shape (len(texts), dimensions), rows of unit length. Text beyond the window is cut (P24)."""
        ...


@runtime_checkable
class ClauseEncoder(Protocol):
    """An encoder that embeds the clauses of a text at the cost of the text alone."""

    async def encode_clauses(self, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
        """Vectors of the text and of each span (start, end, in characters): shape (1 + len(spans), dimensions)."""
        ...


@runtime_checkable
class BulkEncoder(Protocol):
    """An encoder that is faster with many texts per call."""

    @property
    def at_once(self) -> int:
        """How many texts a call should contain, if there are that many."""
        ...


class Embeddings(Protocol):
    """Vectors by key (SHA-256 of provider, model and text)."""

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        """The stored vectors; a key without a vector is missing from the result."""
        ...

    async def put(self, vectors: Mapping[str, Floats]) -> None: ...


class Sessions(Protocol):
    """The state of conversations, by id. A store removes sessions that were not used for long."""

    async def load(self, key: str) -> Session | None: ...

    async def save(self, session: Session) -> Session:
        """Store the session and return it with its new version.

        Raises SessionConflict if the stored version is not the one that this session was derived from.
        """
        ...

    async def forget(self, key: str) -> None: ...


class Statistics(Protocol):
    """Statistics of each tool's calls, over all sessions (EHRR eq. 8, see `pegboard.averages`)."""

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Add outcomes, in order. Concurrent calls are all added, in any order."""
        ...

    async def read(self) -> Mapping[ToolId, ToolStatistics]: ...


class Lessons(Protocol):
    """Sums over the turns of conversations with models, by key: a hash that reveals nothing of what was said."""

    async def add(self, sums: Mapping[str, Seen]) -> None:
        """Add sums to the stored ones (`Seen.joined`). Concurrent additions all count, in any order."""
        ...

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        """The stored sums; a key without sums is missing from the result."""
        ...


class Habits(Protocol):
    """What use taught, as rows of sums (`pegboard.habits`). No row contains a text."""

    async def add(self, sums: Mapping[HabitKey, Floats]) -> None:
        """Add to rows, whose earlier sums fade meanwhile. Concurrent additions all count, in any order."""
        ...

    async def read(self, keys: Sequence[str]) -> Mapping[HabitKey, Habit]:
        """All rows of these keys."""
        ...


class KeptResults(Protocol):
    """Results of tools that their callers may read on. An ``owner`` is a mark that reveals nothing of the caller."""

    async def put(self, owner: str, handle: str, body: bytes, *, seconds: float, most: int) -> bool:
        """Keep a body for so many seconds from now. An owner's bodies take ``most`` bytes: those that end first make
        room. False if it is larger than that alone, and is not kept."""
        ...

    async def get(self, owner: str, handle: str) -> bytes | None:
        """The body; None if the owner has none of that handle, or not any more."""
        ...

    async def expire(self) -> int:
        """Remove what has ended; the number, or 0 where the store does that by itself."""
        ...

    async def forget(self, owner: str | None = None) -> int:
        """Remove everything of an owner, or of all; the number."""
        ...


class Spend(Protocol):
    """What calls cost. Concurrent calls never exceed a limit together, and never block a call that fits."""

    async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
        """Reserve the most that a call may cost, for a limited time. Raises SpendLimitReached if it does not fit."""
        ...

    async def settle(self, reservation: Reservation, actual: NanoUsd) -> None:
        """Replace the reserved amount with the actual cost. Settling twice has no further effect.

        A reservation can still be settled for a day after it expired: the money was spent, even past a limit.
        """
        ...

    async def expire(self) -> int:
        """Remove the reservations that were not settled within a day of expiring; returns their number."""
        ...


class Rates(Protocol):
    """How often each caller calls (`pegboard.rate_limits`). The processes' clocks must agree to within seconds."""

    async def take(self, meters: Sequence[RateMeter]) -> float:
        """Count one call at all of these meters, and return 0; or count nothing, and return the seconds after which it
        would be admitted. Concurrent calls never pass a limit together."""
        ...


class AuditLines(Protocol):
    """An audit log (`pegboard.audit_entries`): lines are appended and never changed; the oldest ones can be removed.

    All processes on one store append to one chain. A store seals with its key, if it has one.
    """

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        """Seal entries, in order, after the last line. Concurrent calls are all appended, in any order."""
        ...

    def read(self) -> AsyncIterator[bytes]:
        """All lines, the oldest first, as they are kept."""
        ...

    async def ends(self) -> str:
        """The ends of the chain as `ChainEnds.text` wrote them; empty before the first line."""
        ...

    async def remove(self, before: float) -> int:
        """Remove the lines up to the last one from before a moment; the number. A file keeps lines as long as its
        newest."""
        ...


class Activity(Protocol):
    """The decisions of a gateway and what came of them (`pegboard.activity_entries`), the newest first."""

    async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
        """Add entries; one with the id of another replaces it. Those with ``known`` ids were stored before: what was
        removed since, by whatever process, stays removed."""
        ...

    async def find(self, query: ActivityQuery, most: int) -> list[ActivityEntry]:
        """At most ``most`` entries that the query chooses."""
        ...

    async def get(self, id_: str) -> ActivityEntry | None: ...

    async def by_day(self, since: int) -> list[tuple[int, ActivityTotals]]:
        """Sums by day since the epoch (UTC), the earliest first, from the day ``since`` on."""
        ...

    async def by(self, grouping: Grouping, since: int, most: int) -> list[ActivityGroup]:
        """Sums from a day on by the values of a field, or by tool that was called: a decision counts for each of its
        tools. At most ``most``, those that were used last."""
        ...

    async def remove(self, before: float) -> int:
        """Remove the entries that are not younger than a moment; the number."""
        ...

    async def forget(self, *, key: str | None = None, conversations: Collection[str] | None = None) -> int:
        """Remove the entries of a key, or of conversations by their marks; without either, all. The number."""
        ...


class Pins(Protocol):
    """Fingerprints of tool definitions: the approved one of each tool and the one seen last (M28)."""

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        """All pins, or those of these tools; a tool that was never seen is missing from the result."""
        ...

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        """Record the definitions that were seen, with their ``texts`` if given, and return the pins of these tools.

        The first definition seen counts as approved, unless the tool is ``doubted``.
        """
        ...

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        """Approve exactly these fingerprints, whatever has been seen in the meantime."""
        ...

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        """The texts behind the pins of these tools; a tool that was never seen is missing from the result."""
        ...

    async def version(self) -> int:
        """Another number after each approval, by whichever process: a cheap way to learn that pins are to be read."""
        ...


class Replicas(Protocol):
    """The processes that share one store. Their clocks must agree to within seconds."""

    async def beat(self, replica: Replica) -> Sequence[Replica]:
        """Record that this process is alive; returns all live processes, this one included, sorted by id."""
        ...

    async def leave(self, replica: Replica) -> None: ...


class SigningKeys(Protocol):
    """The secrets with which the processes on one store sign what clients send back to them."""

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        """Add missing keys and remove those made before the moment ``forget``; returns all keys, the oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A description of a store for people. ``place`` contains no password; ``bytes`` is the size of Pegboard's data.

    ``replicas`` is the number of processes that use it; None if it is meant for one process.
    """

    backend: str
    place: str
    version: str
    migrations: tuple[str, ...]
    counts: Mapping[Kind, int]
    bytes: int
    replicas: int | None = None


class Archive(Protocol):
    """The contents of a store, record by record: to show, export, import and remove them."""

    async def about(self) -> About: ...

    def read(self, kind: Kind, *, after: Key | None = None) -> AsyncIterator[Record]:
        """Records in the order of their keys, those ``after`` one that need not be there. One that changes meanwhile is
        read in its old or its new state.

        Expired sessions and holds that can no longer be settled are left out.
        """
        ...

    async def write(self, records: Iterable[Record]) -> int:
        """Add records, and return how many were stored.

        If a record already exists, one of the two is kept, so that writing twice has no further effect: the session
        that expires later, the statistics of the later call, the lesson and the habit that were updated later, the
        meter with the higher total, and the existing pin or hold. All records are written in one transaction if the
        store has transactions; Redis writes batches, each of them atomic.
        """
        ...

    async def remove(self, kind: Kind, *, keys: Sequence[Key] | None = None, before: float | None = None) -> int:
        """Remove the records with these keys, those last used or expired by a moment, or all; returns the number.

        ``before`` never removes the total of a key, because that would reset its limit. Raises ValueError for pins,
        because a tool without a pin is approved as it is seen next.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a server sent about itself and its tools, unchanged.

    ``introduction`` has ``serverInfo``, ``instructions`` and ``capabilities``, if the server gave them; ``pages`` are
    its `tools/list` results as received; ``protocol`` is the negotiated revision.
    """

    introduction: JsonObject
    pages: tuple[JsonObject, ...]
    protocol: str


class Definitions(Protocol):
    """Listings by key (`ServerSpec.identity`), so that a server's tools are known while it is not running."""

    async def get(self, key: str) -> Listing | None: ...

    async def put(self, key: str, listing: Listing) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a search may return; ``None`` means any server or any tool. Every index supports this."""

    servers: frozenset[str] | None = None
    excluded: frozenset[ToolId] = frozenset()
    only: frozenset[ToolId] | None = None

    def passes(self, tool: ToolId) -> bool:
        return (
            (self.servers is None or tool.server in self.servers)
            and tool not in self.excluded
            and (self.only is None or tool in self.only)
        )


Hits = list[tuple[ToolId, float]]
"""(id, inner product), best first."""


class VectorIndex(Protocol):
    """Nearest vectors by inner product. An index may be remote or slow; its methods do not block the event loop."""

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        """Store one vector per id. An existing id gets the new vector; adding the same vector again is cheap."""
        ...

    async def remove(self, ids: Sequence[ToolId]) -> None: ...

    async def ids(self) -> frozenset[ToolId]:
        """All stored ids."""
        ...

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        """The k best per query, or fewer if fewer pass ``where``. Ties always come in the same order."""
        ...


class TokenCounter(Protocol):
    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """The longest prefix of ``text`` with at most ``limit`` tokens."""
        ...


class DefinitionSource(Protocol):
    """Where full definitions come from: memory, a directory, a live server (Tool Attention A.3)."""

    async def definition(self, tool: ToolId) -> JsonObject:
        """Raises CatalogError for an unknown tool."""
        ...


class EventSink(Protocol):
    def emit(self, event: Event) -> None: ...
