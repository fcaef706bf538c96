"""Where parts plug in. Each protocol is as small as its users allow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from pegboard.events import Event
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
from pegboard.records import Key, Kind, Record
from pegboard.spending import Account, Limits, NanoUsd, Reservation
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
    """Texts to unit vectors. ``provider`` and ``model`` name the space: vectors of two spaces are never compared."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def dimensions(self) -> int:
        """0 where that is not known before the first answer."""
        ...

    async def encode(self, texts: Sequence[str]) -> Floats:
        """Float32 of shape (len(texts), dimensions), rows of length 1. Text beyond the window is cut (P24)."""
        ...


@runtime_checkable
class ClauseEncoder(Protocol):
    """An encoder that can tell the clauses of a text apart at the price of the text alone."""

    async def encode_clauses(self, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
        """The text, then its part in each span (start, end, in characters): shape (1 + len(spans), dimensions)."""
        ...


@runtime_checkable
class BulkEncoder(Protocol):
    """An encoder that makes more of many texts at a time."""

    @property
    def at_once(self) -> int:
        """How many texts a call should have where there are many."""
        ...


class Embeddings(Protocol):
    """Vectors by key (SHA-256 of provider, model and text)."""

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        """The vectors that are there; a missing key is missing from the answer."""
        ...

    async def put(self, vectors: Mapping[str, Floats]) -> None: ...


class Sessions(Protocol):
    """What conversations have accumulated, by their ids. A store forgets by itself what was not used for long."""

    async def load(self, key: str) -> Session | None: ...

    async def save(self, session: Session) -> Session:
        """Store it, if the stored version is still the one it was made from; returns it with its new version.

        Raises SessionConflict.
        """
        ...

    async def forget(self, key: str) -> None: ...


class Statistics(Protocol):
    """What calls have shown of each tool, over all sessions (EHRR eq. 8, see `pegboard.averages`)."""

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        """Take them in, in their order; of calls observed at once, each is taken in, in some order."""
        ...

    async def read(self) -> Mapping[ToolId, ToolStatistics]: ...


class Lessons(Protocol):
    """What the turns of conversations with models have summed up to, by key: a hash, and nothing of what was said."""

    async def add(self, sums: Mapping[str, Seen]) -> None:
        """Join them to what is there (`Seen.joined`); of sums that are added at once, all count, in some order."""
        ...

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        """The sums that are there; a missing key is missing from the answer."""
        ...


class Spend(Protocol):
    """Money that calls cost. Concurrent calls never pass a limit together, and none blocks what fits."""

    async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
        """Hold back what a call may cost at most, for a while. Raises SpendLimitReached where it does not fit."""
        ...

    async def settle(self, reservation: Reservation, actual: NanoUsd) -> None:
        """Charge what the call did cost, instead of what was held; a second time, nothing happens.

        Also after the reservation has expired, for a day: what was spent was spent, even past a limit.
        """
        ...

    async def expire(self) -> int:
        """Forget the reservations that nobody settled for a day after they expired; their number."""
        ...


class Pins(Protocol):
    """Fingerprints of tool definitions: the approved one of each tool and the one seen last (M28)."""

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        """The pins that are there, all or of these tools; one that was never seen is missing from the answer."""
        ...

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        """Note what was seen, with its ``texts`` where they are given, and return the pins of these tools.

        What is seen first counts as approved, except where it is ``doubted``.
        """
        ...

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        """These fingerprints and no others, whatever has been seen in the meantime."""
        ...

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        """The texts behind the pins of these tools; one that was never seen is missing from the answer."""
        ...


class Replicas(Protocol):
    """The processes that serve together, on one store. Their clocks agree to within seconds."""

    async def beat(self, replica: Replica) -> Sequence[Replica]:
        """This one lives, and will be taken to for a while; all that live, this one too, by their ids."""
        ...

    async def leave(self, replica: Replica) -> None: ...


class SigningKeys(Protocol):
    """The secrets with which the processes on one store sign what clients bring back to them."""

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        """Add those that are not there, and forget those made before the moment ``forget``; all, the oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """A store, as people want to know it. ``place`` has no password; ``bytes`` is what its part of the server takes.

    ``replicas`` is the number of processes that serve on it, None where no other is meant to.
    """

    backend: str
    place: str
    version: str
    migrations: tuple[str, ...]
    counts: Mapping[Kind, int]
    bytes: int
    replicas: int | None = None


class Archive(Protocol):
    """All that a store keeps, record by record: to be looked at, carried elsewhere and removed."""

    async def about(self) -> About: ...

    def read(self, kind: Kind) -> AsyncIterator[Record]:
        """In the order of their keys; what is changed meanwhile is read as it was or as it is.

        Not the sessions that have expired, nor the holds that can be settled no more.
        """
        ...

    async def write(self, records: Iterable[Record]) -> int:
        """Add them, and return how many were taken.

        Of a record that is there already the better is kept, so that a second time nothing happens: the session that
        ends later, the statistics of the later call, the lesson that was added to later, the meter that shows more, and
        the pin or hold that is there.
        In one transaction where the store has any; on Redis in batches, each of them whole.
        """
        ...

    async def remove(self, kind: Kind, *, keys: Sequence[Key] | None = None, before: float | None = None) -> int:
        """Remove the records with these keys, or those last used or ended by a moment, or all; how many there were.

        The total of a key is never "before", its limit would begin anew. Raises ValueError for that of pins: a tool
        whose pin is gone would be approved unseen.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a server said of itself and its tools. Nothing in it is ours, and nothing of it was changed.

    ``introduction`` has ``serverInfo``, ``instructions`` and ``capabilities`` as far as the server gave them,
    ``pages`` are its `tools/list` results as they came, ``protocol`` is the revision that was spoken.
    """

    introduction: JsonObject
    pages: tuple[JsonObject, ...]
    protocol: str


class Definitions(Protocol):
    """Listings by key (`ServerSpec.identity`), so that a server need not run to be known."""

    async def get(self, key: str) -> Listing | None: ...

    async def put(self, key: str, listing: Listing) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a search may return. ``None`` is any server, or any tool. Every index can express this."""

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
    """Nearest vectors by inner product. It may be on the network, or compute for long: nothing waits on its thread."""

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        """Store one vector an id; an id that is there already gets the new vector, and the same one costs next to
        nothing."""
        ...

    async def remove(self, ids: Sequence[ToolId]) -> None: ...

    async def ids(self) -> frozenset[ToolId]:
        """What is there."""
        ...

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        """For each query the k best, equal ones in the same order each time; fewer where fewer pass ``where``."""
        ...


class TokenCounter(Protocol):
    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text."""
        ...

    def cut(self, text: str, limit: int) -> str:
        """The longest start of ``text`` that has at most ``limit`` tokens."""
        ...


class DefinitionSource(Protocol):
    """Where full definitions live: memory, a directory, a live server (seed 000 A.3)."""

    async def definition(self, tool: ToolId) -> JsonObject:
        """Raises CatalogError where the tool is not known."""
        ...


class EventSink(Protocol):
    def emit(self, event: Event) -> None: ...
