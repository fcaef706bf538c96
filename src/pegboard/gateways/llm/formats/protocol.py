"""A model request independent of its wire format, and the interface of a wire format.

A codec does no I/O: it takes bytes and returns bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from pegboard.cached_property import cached_property
from pegboard.gateways.llm.formats.json_reader import check_values, understanding
from pegboard.gateways.llm.formats.json_spans import Member, Span, members
from pegboard.lone_surrogates import readable
from pegboard.model import JsonObject, Message, Part, Tool, Turn
from pegboard.retrieval import mark_notes
from pegboard.token_usage import TokenUsage


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a request offers it.

    ``definition`` are its bytes, located at ``span`` in the body. A ``hosted`` tool runs at the provider and cannot be
    ranked; a ``deferred`` one is not in the prompt until a tool that ``searches`` finds it. ``breakpoint`` is its cache
    breakpoint as written. ``protected`` is the reason why it is never removed, if it is protected. ``namespace`` is the
    namespace that contains it, if one does, and ``entry`` the span of that; the ``name`` then begins with it.
    """

    name: str
    definition: bytes
    span: Span
    hosted: bool = False
    deferred: bool = False
    searches: bool = False
    breakpoint: bytes | None = None
    protected: str = ""
    namespace: str = ""
    entry: Span | None = None

    @property
    def own_name(self) -> str:
        """The name inside the namespace."""
        return self.name[len(self.namespace) + 1 :] if self.namespace else self.name

    @property
    def identity(self) -> bytes:
        """All that makes it this tool: the definition, and the namespace, which is no part of it."""
        return (
            b"%b\0%b" % (self.namespace.encode("utf-8", "replace"), self.definition)
            if self.namespace
            else self.definition
        )

    @property
    def stays(self) -> bool:
        """Whether it is sent unchanged whatever happens to the others."""
        return self.hosted or bool(self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChoice:
    """The request's tool choice: no call, a call if the model likes (the default), or at least one.

    ``names`` are the only tools that may be called, if the request lists them; ``forced`` means that the one tool must
    be called.
    """

    mode: Literal["none", "auto", "required"] = "auto"
    names: frozenset[str] | None = None
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSearches:
    """What the gateway's searches for deferred tools left in a history that the provider keeps and no later request can
    change. ``loaded`` names the tools that they brought."""

    loaded: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call of the gateway's beside calls for the client, in an answer that the provider keeps: the request that
    continues the answer brings its result.

    ``kind`` is the type of its item; ``found`` are the names of the tools that it found, None if it was not a search or
    failed.
    """

    id: str
    kind: str
    found: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class LlmRequest:
    """A parsed model request.

    ``text`` is the body with lone surrogates replaced, at the same positions; ``fields`` are its members. ``called``
    names the tools that the conversation called, ``referenced`` those it refers to by a `tool_reference`, ``native``
    those it called before anything referred to them, and ``searched`` the provider's search tools that it used.
    ``unnamed`` are calls that the history has without their names: by the id of each, the place of the message in the
    turn that stands for it.
    ``continues`` is the earlier answer or conversation, kept by the provider, that it continues; ``stored`` means that
    the provider keeps the answer; ``mended``: the body has been changed to continue that earlier answer, and ``found``
    names the tools that open calls in it have found; ``conversation`` is the id of its own conversation, if it or that
    history has one. ``kept`` is what our searches left in that history, if there were any; ``remembered`` counts the
    user's messages that were inserted from it.
    ``untouchable`` says why nothing may be changed, if so; ``may_lose_all`` says whether all tools may be removed,
    ``may_lose_some`` whether any may: not if a call is required and no tool is known to end the run. ``layout`` is
    private to the codec. ``around`` are the bytes before and after the body if another body contains it.
    """

    body: bytes
    text: bytes
    fields: Mapping[str, Member]
    tools: tuple[OfferedTool, ...]
    turn: Turn
    choice: ToolChoice = ToolChoice()
    called: frozenset[str] = frozenset()
    unnamed: Mapping[str, int] = field(default_factory=dict)
    referenced: frozenset[str] = frozenset()
    native: frozenset[str] = frozenset()
    searched: frozenset[str] = frozenset()
    model: str = ""
    streams: bool = False
    continues: str | None = None
    stored: bool = False
    mended: bool = False
    found: tuple[str, ...] = ()
    conversation: str = ""
    kept: KeptSearches | None = None
    remembered: int = 0
    untouchable: str = ""
    may_lose_all: bool = True
    may_lose_some: bool = True
    layout: Any = None
    around: tuple[bytes, bytes] = (b"", b"")

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of the offered tools."""
        return frozenset(tool.name for tool in self.tools if tool.name)

    @cached_property
    def may_be_picked(self) -> frozenset[int]:
        """The places of the tools that relevance may select; if the request lists allowed tools, only those."""
        listed = None if self.choice.forced else self.choice.names
        return frozenset(
            place
            for place, tool in enumerate(self.tools)
            if not tool.stays and not tool.deferred and (listed is None or tool.name in listed)
        )

    @property
    def has_own_search(self) -> bool:
        """Whether the client has its tools searched for already: by the provider, or by itself."""
        return bool(self.referenced) or any(tool.deferred or tool.searches for tool in self.tools)

    @property
    def has_tool_history(self) -> bool:
        return bool(self.called) or any(message.role == "tool" for message in self.turn.messages)

    def naming(self, names: Mapping[str, str]) -> LlmRequest:
        """The request with the ``names`` of calls by their ids, where they were unknown."""
        messages = list(self.turn.messages)
        for call, name in names.items():
            message = messages[place := self.unnamed[call]]
            messages[place] = replace(message, parts=(*message.parts, Part(kind="tool_call", tool=name)))
        return replace(
            self,
            turn=replace(self.turn, messages=tuple(messages)),
            called=self.called | frozenset(names.values()),
            unnamed={},
        )

    def after(self, messages: Sequence[Message], called: Collection[str], conversation: str = "") -> LlmRequest:
        """The request with a remembered conversation inserted after its instructions."""
        own = self.turn.messages
        begin = next((place for place, each in enumerate(own) if each.role != "system"), len(own))
        return replace(
            self,
            turn=replace(self.turn, messages=(*own[:begin], *messages, *own[begin:])),
            called=self.called | frozenset(called),
            continues=None,
            conversation=self.conversation or conversation,
            remembered=sum(1 for message in messages if message.role == "user"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStarted:
    """The provider's id of an answer."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """The model calls one of the caller's tools. ``id`` is empty if the format has none."""

    name: str
    id: str = ""


Observation = AnswerStarted | ToolCalled | TokenUsage


class Observer(Protocol):
    """Observes one answer as it passes, in chunks of any size. It never raises and changes nothing."""

    def feed(self, chunk: bytes) -> Sequence[Observation]:
        """The observations that this chunk completes."""
        ...

    def finish(self) -> Sequence[Observation]:
        """The observations that the end of the answer completes."""
        ...


class Codec(Protocol):
    """One wire format."""

    @property
    def name(self) -> str: ...

    def parse(self, body: bytes, path: str) -> LlmRequest:
        """Parse a body that goes to this path, as servers read it. Raises RequestNotUnderstood; such a body should be
        forwarded unchanged."""
        ...

    def tool(self, definition: JsonObject) -> Tool | None:
        """The offered tool for a catalog; None for a hosted one. Raises CatalogError."""
        ...

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        """The body with these tools, as chosen by `apply_tool_choice`, with everything that depends on the others
        corrected."""
        ...

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        """The body with all its tools and a restriction to these; None if the format cannot express that."""
        ...

    def observe(self, content_type: str) -> Observer:
        """The observer of an answer with this Content-Type."""
        ...


Parse = Callable[[bytes, dict[str, Member]], LlmRequest]
NO_FIELDS: Mapping[str, Member] = MappingProxyType({})


def parsed(body: bytes, parse: Parse) -> LlmRequest:
    """Parse a body's text and members with ``parse``. Raises RequestNotUnderstood."""
    check_values(body)
    with understanding():
        try:
            text, fields = body, members(body)
        except msgspec.DecodeError:
            text = readable(body)
            fields = members(text)
        request = parse(text, fields)
        request = replace(request, turn=mark_notes(request.turn))
        return request if text is body else replace(request, body=body, tools=_as_sent(request.tools, body))


def _as_sent(tools: Sequence[OfferedTool], body: bytes) -> tuple[OfferedTool, ...]:
    return tuple(msgspec.structs.replace(tool, definition=body[slice(*tool.span)]) for tool in tools)
