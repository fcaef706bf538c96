"""Where parts plug in. Each protocol is as small as its users allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pegboard.events import Event
from pegboard.model import Fingerprint, Floats, JsonObject, Outcome, Pin, Session, ToolId, ToolStatistics
from pegboard.spending import Account, Limits, NanoUsd, Reservation


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
    def dimensions(self) -> int: ...

    async def encode(self, texts: Sequence[str]) -> Floats:
        """Float32 of shape (len(texts), dimensions), rows of length 1. Text beyond the window is cut (P24)."""
        ...


@runtime_checkable
class ClauseEncoder(Protocol):
    """An encoder that can tell the clauses of a text apart at the price of the text alone."""

    async def encode_clauses(self, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
        """The text, then its part in each span (start, end, in characters): shape (1 + len(spans), dimensions)."""
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

    async def get(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Pin]:
        """The pins that are there; a tool that was never seen is missing from the answer."""
        ...

    async def put(self, seen: Mapping[ToolId, Fingerprint]) -> Mapping[ToolId, Pin]:
        """Note what was seen, and return the pins of these tools. What is seen first counts as approved."""
        ...

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        """These fingerprints and no others, whatever has been seen in the meantime."""
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
    """What a search may return. ``servers=None`` means any server. Every index can express this."""

    servers: frozenset[str] | None = None
    excluded: frozenset[ToolId] = frozenset()

    def passes(self, tool: ToolId) -> bool:
        return (self.servers is None or tool.server in self.servers) and tool not in self.excluded


class VectorIndex(Protocol):
    """Nearest vectors by inner product."""

    def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        """Store one vector an id; an id that is there already gets the new vector."""
        ...

    def remove(self, ids: Sequence[ToolId]) -> None: ...

    def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[list[tuple[ToolId, float]]]:
        """For each query the k best (id, inner product), best first; fewer where fewer pass ``where``."""
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
