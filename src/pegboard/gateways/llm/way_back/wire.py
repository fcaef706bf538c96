"""What the way back needs of a wire format, and the nouns it speaks of. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pegboard.gateways.llm.codec import Request

Document = dict[str, Any]
"""A whole answer, or what the events of a streamed one amount to."""
Hides = Callable[[str], bool]
"""Whether a call of a function of this name is kept from the client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTool:
    """The extra tool, whose one argument is ``query``."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A call that the model makes. ``arguments`` is JSON; ``id`` is empty where the format has none."""

    name: str
    arguments: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An answer whose calls the gateway answered itself, and what it answered to each."""

    answer: Document
    results: Sequence[tuple[Asked, str]]


class Joiner(Protocol):
    """Makes one stream of the streams of several answers, as they come.

    Of each answer everything passes but the calls that are ``held`` and the events that end it.
    """

    def begin(self, held: Hides) -> None:
        """A further answer begins, of which these calls are held back."""
        ...

    def feed(self, piece: bytes) -> bytes:
        """What passes after this piece."""
        ...

    def close(self) -> Document | None:
        """The answer that has ended; None where it broke off, or has parts that it cannot be made up of again."""
        ...

    def finish(self, hides: Hides) -> bytes:
        """The end of the stream, with the calls that were held back and are not hidden after all."""
        ...

    def failed(self, body: bytes) -> bytes:
        """The end of a stream whose further answer was an error with this body."""
        ...


class WireFormat(Protocol):
    """One wire format, by the name of its codec."""

    def closed(self, request: Request, query: str) -> str:
        """Why there is no way back for such a request to a URL with this query; empty where there is."""
        ...

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        """The body with one tool more, behind the others."""
        ...

    def calls(self, answer: Document) -> list[Asked]:
        """The calls of the caller's functions, and of ours."""
        ...

    def waits(self, answer: Document) -> bool:
        """Whether it ended so that its calls be answered: not where it was cut off."""
        ...

    def continued(self, body: bytes, exchanges: Sequence[Exchange]) -> bytes:
        """The body with these exchanges behind its conversation."""
        ...

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        """One answer of several: all calls but those of the last are hidden, and of the last those that ``hides``."""
        ...

    def joiner(self) -> Joiner: ...


class RoundTrip(Protocol):
    """A request that is asked again as long as its answers are for the gateway."""

    @property
    def format(self) -> WireFormat: ...

    @property
    def searches(self) -> int:
        """How often the model searched."""
        ...

    @property
    def found(self) -> Sequence[str]:
        """The names of the tools that came back to it."""
        ...

    @property
    def rounds(self) -> Sequence[frozenset[int]]:
        """The places of the tools that the request had each time that it was asked again."""
        ...

    def body(self) -> bytes:
        """The request as it goes out now."""
        ...

    def held(self, name: str) -> bool:
        """Whether a call of this tool is not for the client as long as it stands alone."""
        ...

    def hides(self, name: str) -> bool:
        """Whether it is not for the client even where nothing is asked again."""
        ...

    def goes_on(self, answer: Document) -> bool:
        """Whether the answer is for the gateway."""
        ...

    async def answer(self, answer: Document) -> None:
        """Answer its calls; the next `body` has the results."""
        ...
