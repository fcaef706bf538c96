"""What the gateway knows of a model request, whatever wire format it came in, and the seam that each format fills.

A codec does no I/O: it is handed bytes and hands back bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from pegboard.gateways.llm.reading import check_values, readable, understanding
from pegboard.gateways.llm.spans import Member, Span, members
from pegboard.model import JsonObject, Message, Tool, Turn
from pegboard.retrieval import as_said


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a request offers it.

    ``definition`` has its bytes, which stand at ``span`` in the body. A ``hosted`` tool runs at the provider and has
    nothing to rank; a ``deferred`` one is not in the prompt until a tool that ``searches`` finds it. ``breakpoint`` is
    the cache breakpoint it carries, as it was written. ``protected`` says why it is never taken away, if it is not.
    """

    name: str
    definition: bytes
    span: Span
    hosted: bool = False
    deferred: bool = False
    searches: bool = False
    breakpoint: bytes | None = None
    protected: str = ""

    @property
    def stays(self) -> bool:
        """Whether it is sent as it came, whatever becomes of the others."""
        return self.hosted or bool(self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the request says about calling tools: not at all, if it likes (what no word on it means), or at least one.

    ``names`` are the only tools that may be called, where the request lists them; ``forced`` says that it is not a
    list to choose from but the one that has to be called.
    """

    mode: Literal["none", "auto", "required"] = "auto"
    names: frozenset[str] | None = None
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A model request, read once.

    ``text`` is the body with what no text can hold replaced, byte for byte in the same places; ``fields`` are its
    members. ``called`` names the tools that the conversation called, ``referenced`` those it refers to by a
    `tool_reference`, ``native`` those that it called before anything referred to them, and ``searched`` the provider's
    search tools that it used. ``continues`` says which earlier answer or conversation, kept by the provider, it goes on
    from; ``conversation`` is what its own goes by, where it or that history says so.
    ``untouchable`` says why nothing of it may be changed, where that is so; ``may_lose_all`` whether all tools may go,
    ``may_lose_some`` whether any may: not where a call is required and no tool is known to end the run.
    ``layout`` is the codec's own. ``around`` are the bytes before and behind the body, where another one holds it.
    """

    body: bytes
    text: bytes
    fields: Mapping[str, Member]
    tools: tuple[Offered, ...]
    turn: Turn
    choice: Choice = Choice()
    called: frozenset[str] = frozenset()
    referenced: frozenset[str] = frozenset()
    native: frozenset[str] = frozenset()
    searched: frozenset[str] = frozenset()
    model: str = ""
    streams: bool = False
    continues: str | None = None
    conversation: str = ""
    untouchable: str = ""
    may_lose_all: bool = True
    may_lose_some: bool = True
    layout: Any = None
    around: tuple[bytes, bytes] = (b"", b"")

    @property
    def names(self) -> frozenset[str]:
        """What tools are offered by name."""
        return frozenset(tool.name for tool in self.tools if tool.name)

    @property
    def has_tool_history(self) -> bool:
        return bool(self.called) or any(message.role == "tool" for message in self.turn.messages)

    def after(self, messages: Sequence[Message], called: Collection[str], conversation: str = "") -> Request:
        """The request with a conversation, which the provider kept and we remember, between its instructions and the
        rest."""
        own = self.turn.messages
        begin = next((place for place, each in enumerate(own) if each.role != "system"), len(own))
        return replace(
            self,
            turn=replace(self.turn, messages=(*own[:begin], *messages, *own[begin:])),
            called=self.called | frozenset(called),
            continues=None,
            conversation=self.conversation or conversation,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The provider's id of an answer."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model asks for a call of a tool of the caller's. ``id`` is empty where the format has none."""

    name: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens so far. ``input`` is all of the prompt: what was read from the cache, and written to it, is part of it."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def plus(self, more: Usage) -> Usage:
        """Of two answers together."""
        return Usage(
            input=self.input + more.input,
            output=self.output + more.output,
            cache_read=self.cache_read + more.cache_read,
            cache_write=self.cache_write + more.cache_write,
        )


Observation = Started | ToolCalled | Usage


class Observer(Protocol):
    """Follows one answer as it passes by, in pieces of any size. It never raises, and changes nothing."""

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        """What this piece completes."""
        ...

    def finish(self) -> Sequence[Observation]:
        """What the end of the answer completes."""
        ...


class Codec(Protocol):
    """One wire format."""

    @property
    def name(self) -> str: ...

    def parse(self, body: bytes, path: str) -> Request:
        """Raises RequestNotUnderstood; such a body is to be forwarded as it came."""
        ...

    def tool(self, definition: JsonObject) -> Tool | None:
        """What an offered tool is to a catalog; None for a hosted one. Raises CatalogError."""
        ...

    def rewrite(self, request: Request, kept: Collection[int]) -> bytes:
        """The body with these tools, as `obedience.obey` gave them, and whatever depends on the others mended."""
        ...

    def narrow(self, request: Request, kept: Collection[int]) -> bytes | None:
        """The body with all its tools, and a word that just these may be called; None where there is no such word."""
        ...

    def defer(self, request: Request, loaded: Collection[int], kept: Collection[int]) -> bytes | None:
        """The body with the kept tools, of which the prompt has just the loaded ones: the provider searches the others
        when the model asks it to. None where that cannot be said."""
        ...

    def observe(self, content_type: str) -> Observer:
        """Of an answer with this Content-Type."""
        ...


Parse = Callable[[bytes, dict[str, Member]], Request]
NO_FIELDS: Mapping[str, Member] = MappingProxyType({})


def parsed(body: bytes, parse: Parse) -> Request:
    """What ``parse`` makes of a body's text and members. Raises RequestNotUnderstood."""
    check_values(body)
    with understanding():
        try:
            text, fields = body, members(body)
        except msgspec.DecodeError:
            text = readable(body)
            fields = members(text)
        request = parse(text, fields)
        request = replace(request, turn=as_said(request.turn))
        return request if text is body else replace(request, body=body, tools=_as_sent(request.tools, body))


def _as_sent(tools: Sequence[Offered], body: bytes) -> tuple[Offered, ...]:
    return tuple(msgspec.structs.replace(tool, definition=body[slice(*tool.span)]) for tool in tools)
