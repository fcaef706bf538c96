"""What tool search needs from a wire format, and its data types. Without I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pegboard.gateways.llm.formats.protocol import LlmRequest

MOST_ROUNDS = 3
"""How often a request is repeated at most; the last repetition goes without the search tool."""
Document = dict[str, Any]
"""A complete answer, or the sum of a streamed one's events."""
Hides = Callable[[str], bool]
"""Returns whether calls of the function with this name are hidden from the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTool:
    """The search tool, whose arguments are ``query`` and, where it finds more than tools, one of ``kinds``."""

    name: str
    description: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A call by the model. ``arguments`` is JSON; ``id`` is empty if the format has none."""

    name: str
    arguments: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchExchange:
    """An answer whose calls the gateway answered itself, with the results."""

    answer: Document
    results: Sequence[tuple[FunctionCall, str]]


class Joiner(Protocol):
    """Joins the streams of several answers into one as they arrive.

    Everything of each answer passes except calls that are ``held`` and the events that end it.
    """

    def begin(self, held: Hides) -> None:
        """Begin another answer, in which these calls are buffered."""
        ...

    def feed(self, piece: bytes) -> bytes:
        """The output for this chunk."""
        ...

    def close(self) -> Document | None:
        """The complete answer; None if it broke off, or has parts that cannot be reassembled."""
        ...

    def finish(self, hides: Hides) -> bytes:
        """The end of the stream, including the buffered calls that are not hidden."""
        ...

    def failed(self, body: bytes) -> bytes:
        """The end of a stream if a further answer is an error with this body."""
        ...


class ToolSearchCodec(Protocol):
    """The support for tool search in one wire format."""

    def closed(self, request: LlmRequest, query: str) -> str:
        """Why tool search is not possible for a request to a URL with this query; empty if it is."""
        ...

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        """The body with one more tool, after the others."""
        ...

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        """The body with these definitions, as the client wrote them, after its other tools."""
        ...

    def calls(self, answer: Document) -> list[FunctionCall]:
        """The calls of the caller's functions and of the gateway's."""
        ...

    def waits(self, answer: Document) -> bool:
        """Whether the answer ended to have its calls answered, rather than being cut off."""
        ...

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        """The body with these exchanges appended to its conversation."""
        ...

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        """Merges several answers into one without calls, except for those of the last that ``hides`` lets through."""
        ...

    def joiner(self) -> Joiner: ...


class RoundTrip(Protocol):
    """A request that is repeated as long as the gateway answers its calls."""

    @property
    def format(self) -> ToolSearchCodec: ...

    @property
    def searches(self) -> int:
        """How often the model searched."""
        ...

    @property
    def found(self) -> Sequence[str]:
        """The names of the tools that were found."""
        ...

    @property
    def rounds(self) -> Sequence[frozenset[int]]:
        """The places of the tools in each repetition of the request."""
        ...

    def body(self) -> bytes:
        """The current body of the request."""
        ...

    def held(self, name: str) -> bool:
        """Whether a call of this tool is buffered: the gateway answers it if no call for the client comes with it."""
        ...

    def hides(self, name: str) -> bool:
        """Whether a call of this tool never reaches the client."""
        ...

    def goes_on(self, answer: Document) -> bool:
        """Whether the gateway has to answer the calls."""
        ...

    async def answer(self, answer: Document) -> None:
        """Answer the calls; the next `body` includes the results."""
        ...

    async def found_by(self, call: FunctionCall) -> tuple[str, ...] | None:
        """The names of the tools that a call finds whose result comes with the client's next request; None if it is no
        search, or fails."""
        ...
