"""What `call_tool` needs of a wire format, beside what the way back has of it. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.one_tool.calls import Reader
from pegboard.gateways.llm.spans import Edit
from pegboard.gateways.llm.way_back.wire import Document

Spot = Callable[[str], Edit]
"""The edit that puts a text right before what the user says in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneTool:
    """`call_tool` as a request offers it, under a name that no tool of the caller's has."""

    name: str
    description: str
    breakpoint: bytes | None = None


class Translator(Protocol):
    """Makes native calls of the calls in a streamed answer, as soon as each is whole. All else passes as it comes."""

    def feed(self, piece: bytes) -> bytes:
        """What passes after this piece."""
        ...

    def finish(self) -> bytes:
        """What the end of the stream leaves."""
        ...


class Dialect(Protocol):
    """One wire format, by the name of its codec. Edits are of the request's body."""

    @property
    def takes_any_text(self) -> bool:
        """Whether arguments are a string, which may hold anything."""
        ...

    def closed(self, request: Request) -> str:
        """Why its tools cannot be called through another; empty where they can."""
        ...

    def offer(self, tool: OneTool) -> bytes:
        """The tool as an entry of the request's tools."""
        ...

    def tools(self, request: Request, entry: bytes) -> list[Edit]:
        """Makes of the request's tools those that stay, as they were, and this one."""
        ...

    def calls(self, request: Request, own: str) -> list[Edit]:
        """Makes of the calls in the history calls of ``own``, and of their results its results."""
        ...

    def spots(self, request: Request) -> Sequence[Spot]:
        """One for each message in which the user says something, in their order."""
        ...

    def translated(self, answer: Document, reader: Reader) -> Document:
        """A whole answer with native calls; the same object where there is none of ours in it."""
        ...

    def translator(self, reader: Reader) -> Translator: ...
