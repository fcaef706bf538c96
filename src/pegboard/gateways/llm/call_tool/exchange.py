"""One request whose tools are called through `call_tool`: which calls pass, and the native calls that the client
sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pegboard.errors import ArgumentsInvalid
from pegboard.gateways.llm.call_tool import prompts
from pegboard.gateways.llm.formats.call_tool import CallToolCodec, Translator
from pegboard.gateways.llm.formats.call_translation import Reader, TranslatedCall, unwrapped
from pegboard.gateways.llm.formats.edits import loaded, strictly_loaded
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_search import (
    MOST_ROUNDS,
    Document,
    FunctionCall,
    Hides,
    Joiner,
    SearchExchange,
    SearchTool,
    ToolSearchCodec,
)
from pegboard.gateways.llm.tool_results.result_reads import MOST_READS, ResultReads
from pegboard.gateways.llm.tool_search.tool import refused
from pegboard.model import JsonObject, Tool
from pegboard.routing import check_lightly

Waiting = tuple[FunctionCall, TranslatedCall | None]
"""A call that the gateway has to answer, with its meaning."""


@dataclass(slots=True, kw_only=True)
class CallToolGate:
    """Decides which calls go to the client. ``callable`` are the tools by name, ``shown`` the names of those whose
    definitions the model has seen."""

    own: str
    callable: Mapping[str, Sequence[Tool]]
    shown: set[str]
    brought: list[str] = field(default_factory=list)
    """The names of the tools whose definitions it got as an answer."""

    def meant(self, call: TranslatedCall) -> TranslatedCall:
        """The call with the whole name of its tool, if the model left out the beginning, which the pool says once for
        many tools: then one name alone ends with what it wrote."""
        if call.name in self.callable:
            return call
        whole = [name for name in self.callable if _ends_with(name, call.name)]
        return replace(call, name=whole[0]) if len(whole) == 1 else call

    def passes(self, call: TranslatedCall) -> bool:
        """Whether the call goes to the client. If its definition was shown, any JSON object passes, as in a native
        call."""
        given = strictly_loaded(call.arguments)
        if call.name not in self.callable or given is None:
            return False
        return call.name in self.shown or not all(_problems(tool, given) for tool in self.callable[call.name])

    def answer(self, call: TranslatedCall | None) -> str:
        """The answer to a call that does not pass."""
        if call is None:
            return prompts.without_name(self.own)
        if call.name not in self.callable:
            return refused(call.name, sorted(self.shown), search="")
        tools = self.callable[call.name]
        given = strictly_loaded(call.arguments)
        problems = ["arguments: not a JSON object"] if given is None else _problems(tools[0], given)
        if call.name not in self.shown:
            self.shown.add(call.name)
            self.brought.append(call.name)
        return prompts.not_fitting(tools, problems)


class CallToolSearchCodec:
    """The ``inner`` codec with answers as the client gets them. ``offered`` is the request's array of tools."""

    def __init__(self, inner: ToolSearchCodec, dialect: CallToolCodec, gate: CallToolGate, *, offered: bytes) -> None:
        self._inner = inner
        self._dialect = dialect
        self._gate = gate
        self.reads: ResultReads | None = None
        """Answers `read_result`, which the model calls as it is, or through `call_tool`."""
        self._judging = Reader(own=gate.own, passes=gate.passes, meant=gate.meant, offered=offered)
        self._handing_on = Reader(
            own=gate.own, passes=self._is_for_client, meant=gate.meant, drops=True, offered=offered
        )

    def closed(self, request: LlmRequest, query: str) -> str:
        return self._inner.closed(request, query)

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        return self._inner.offer(body, tool)

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        return self._inner.extended(body, definitions)

    def calls(self, answer: Document) -> list[FunctionCall]:
        return self._inner.calls(self._dialect.translated(answer, self._handing_on))

    def waits(self, answer: Document) -> bool:
        return self._inner.waits(answer)

    def waiting(self, answer: Document) -> list[Waiting]:
        """The calls of an answer that the gateway has to answer, each with its meaning; empty if the answer is the
        client's: it was cut off, or contains a call that passes."""
        asked = self._inner.calls(answer) if self._inner.waits(answer) else []
        read = ((call, self._unwrapped(call)) for call in asked if self.is_ours(call.name))
        calls = [(call, None if meant is None else self._gate.meant(meant)) for call, meant in read]
        passing = len(calls) < len(asked) or any(call and self._gate.passes(call) for _, call in calls)
        return [] if passing else calls

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        return self._inner.continued(body, exchanges)

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = self._dialect.translated(answers[-1], self._handing_on)
        return self._inner.merged([*answers[:-1], last], self.is_read)

    def joiner(self) -> Joiner:
        return CallToolJoiner(self._inner.joiner(), self)

    def is_ours(self, name: str) -> bool:
        return name == self._gate.own or self.is_read(name)

    def is_read(self, name: str) -> bool:
        return self.reads is not None and self.reads.named(name)

    async def answer(self, call: FunctionCall, meant: TranslatedCall | None) -> str:
        """The gateway's answer to a call."""
        if self.reads is not None and self.is_read(call.name):
            return await self.reads.answer(call.name, call.arguments)
        if self.reads is not None and meant is not None and self.is_read(meant.name):
            return await self.reads.answer(meant.name, meant.arguments)
        if meant is None and loaded(call.arguments) is None:
            return prompts.not_json(call.name)
        return self._gate.answer(meant)

    def only_reads(self, waiting: Sequence[Waiting]) -> bool:
        """Whether all of these calls read results, as they are or through `call_tool`."""
        return all(self.is_read(call.name if meant is None else meant.name) for call, meant in waiting)

    def _unwrapped(self, call: FunctionCall) -> TranslatedCall | None:
        return None if self.is_read(call.name) else unwrapped(call.arguments, self._gate.own)

    def hides_of(self, answer: Document | None) -> Hides:
        """Calls of `call_tool` are hidden if none of them can be translated; in an answer that was cut off they stay
        visible."""
        native = [] if answer is None else [call for call in self.calls(answer) if not self.is_read(call.name)]
        sent = answer is not None and (bool(native) or not self.waits(answer))
        return lambda name: self.is_read(name) or (self.is_ours(name) and not sent)

    def judging(self) -> Translator:
        """For a stream that continues: calls that do not pass stay unchanged."""
        return self._dialect.translator(self._judging)

    def handing_on(self) -> Translator:
        """For the end of a stream."""
        return self._dialect.translator(self._handing_on)

    def _is_for_client(self, call: TranslatedCall) -> bool:
        """Reads are not. If the format has arguments as an object, they must begin like one, even if the rest was cut
        off."""
        begins = self._dialect.takes_any_text or call.arguments.lstrip()[:1] in ("", "{")
        return begins and not self.is_read(call.name)


class CallToolJoiner:
    """Translates calls to native ones before the streams are joined, and the buffered calls at the end."""

    def __init__(self, inner: Joiner, format_: CallToolSearchCodec) -> None:
        self._inner = inner
        self._format = format_
        self._translator = format_.judging()
        self._answer: Document | None = None
        self._left = b""

    def begin(self, held: Hides) -> None:
        self._translator = self._format.judging()
        self._inner.begin(held)

    def feed(self, piece: bytes) -> bytes:
        return self._taken() + self._inner.feed(self._translator.feed(piece))

    def close(self) -> Document | None:
        self._left = self._inner.feed(self._translator.finish())
        self._answer = self._inner.close()
        return self._answer

    def finish(self, hides: Hides) -> bytes:
        end = self._format.handing_on()
        last = self._inner.finish(self._format.hides_of(self._answer))
        return self._taken() + end.feed(last) + end.finish()

    def failed(self, body: bytes) -> bytes:
        return self._inner.failed(body)

    def _taken(self) -> bytes:
        """What the end of the last answer left over; more may follow."""
        left, self._left = self._left, b""
        return left


@dataclass(slots=True, kw_only=True)
class CallToolRoundTrip:
    """The round trip. ``rewritten`` is the request's body; ``sent`` are the places of the tools that the model sees in
    it.

    The gateway itself answers calls that name no tool, or whose arguments do not fit.
    """

    format: CallToolSearchCodec
    gate: CallToolGate
    rewritten: bytes
    sent: frozenset[int] = frozenset()
    exchanges: list[SearchExchange] = field(default_factory=list)
    asked: int = 0
    """Repetitions for something else than reads."""

    @property
    def searches(self) -> int:
        return 0

    @property
    def found(self) -> list[str]:
        """The names of the tools whose definitions the model got as an answer."""
        return self.gate.brought

    @property
    def rounds(self) -> list[frozenset[int]]:
        """The tools never change."""
        return [self.sent] * len(self.exchanges)

    def body(self) -> bytes:
        """The current body of the request."""
        reads = self.format.reads
        body = self.rewritten if reads is None else self.format.extended(self.rewritten, reads.definitions)
        return self.format.continued(body, self.exchanges) if self.exchanges else body

    def held(self, name: str) -> bool:
        """Calls of `call_tool` are buffered; calls that pass have been renamed by then."""
        return self.format.is_ours(name)

    def hides(self, name: str) -> bool:
        return self.format.is_ours(name)

    def goes_on(self, answer: Document) -> bool:
        """Whether the gateway has to answer the calls."""
        waiting, reads = self.format.waiting(answer), self.format.reads
        if not waiting or len(self.exchanges) >= MOST_ROUNDS + MOST_READS:
            return False
        if reads is not None and self.format.only_reads(waiting):
            return reads.rounds < MOST_READS
        return self.asked < MOST_ROUNDS

    async def answer(self, answer: Document) -> None:
        """Answer the calls; the next `body` includes the results."""
        waiting = self.format.waiting(answer)
        self.asked += not self.format.only_reads(waiting)
        results = [(call, await self.format.answer(call, meant)) for call, meant in waiting]
        self.exchanges.append(SearchExchange(answer=answer, results=results))

    async def found_by(self, call: FunctionCall) -> None:
        """Nothing is searched for."""


def _ends_with(name: str, words: str) -> bool:
    """Whether a name ends with these words, and not with a part of one."""
    return name.endswith(words) and not name[: -len(words)][-1:].isalnum()


def _problems(tool: Tool, arguments: JsonObject) -> Sequence[str]:
    try:
        check_lightly(tool, arguments)
    except ArgumentsInvalid as error:
        return error.problems
    return ()
