"""A wire format in which the calls of `call_tool` are the native ones that they stand for."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.one_tool.calls import Call, Reader, unwrapped
from pegboard.gateways.llm.one_tool.gate import Gate
from pegboard.gateways.llm.one_tool.wire import Dialect, Translator
from pegboard.gateways.llm.way_back.wire import Asked, Document, Exchange, Hides, Joiner, SearchTool, WireFormat


class OneToolFormat:
    """What its ``inner`` format does, with answers as the client gets them. ``offered`` are the request's tools."""

    def __init__(self, inner: WireFormat, dialect: Dialect, gate: Gate, *, offered: bytes) -> None:
        self._inner = inner
        self._dialect = dialect
        self._gate = gate
        self._judging = Reader(own=gate.own, passes=gate.passes, offered=offered)
        self._handing_on = Reader(own=gate.own, passes=self._can_be_sent, drops=True, offered=offered)

    def closed(self, request: Request, query: str) -> str:
        return self._inner.closed(request, query)

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        return self._inner.offer(body, tool)

    def calls(self, answer: Document) -> list[Asked]:
        return self._inner.calls(self._dialect.translated(answer, self._handing_on))

    def waits(self, answer: Document) -> bool:
        return self._inner.waits(answer)

    def waiting(self, answer: Document) -> list[tuple[Asked, Call | None]]:
        """The calls of an answer that is the gateway's to answer, and what each means; none where it is the client's,
        for it was cut off or has a call that passes."""
        asked = self._inner.calls(answer) if self._inner.waits(answer) else []
        calls = [(call, unwrapped(call.arguments, self._gate.own)) for call in asked if self.is_ours(call.name)]
        passing = len(calls) < len(asked) or any(call and self._gate.passes(call) for _, call in calls)
        return [] if passing else calls

    def continued(self, body: bytes, exchanges: Sequence[Exchange]) -> bytes:
        return self._inner.continued(body, exchanges)

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = self._dialect.translated(answers[-1], self._handing_on)
        return self._inner.merged([*answers[:-1], last], lambda _: False)

    def joiner(self) -> Joiner:
        return OneToolJoiner(self._inner.joiner(), self)

    def is_ours(self, name: str) -> bool:
        return name == self._gate.own

    def hides_of(self, answer: Document | None) -> Hides:
        """Calls of ours are hidden where nothing can be made of any of them; one that was cut off shows it later."""
        sent = answer is not None and (bool(self.calls(answer)) or not self.waits(answer))
        return lambda name: self.is_ours(name) and not sent

    def judging(self) -> Translator:
        """Of a stream that goes on: calls that do not pass stay what they are."""
        return self._dialect.translator(self._judging)

    def handing_on(self) -> Translator:
        """Of the end of a stream."""
        return self._dialect.translator(self._handing_on)

    def _can_be_sent(self, call: Call) -> bool:
        """Where a format has arguments as an object, it must be one, if only as far as it was not cut off."""
        return self._dialect.takes_any_text or call.arguments.lstrip()[:1] in ("", "{")


class OneToolJoiner:
    """Makes native calls of what comes before it is joined, and of what was held back when all is said."""

    def __init__(self, inner: Joiner, format_: OneToolFormat) -> None:
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
        """What the end of an answer left, in place of which more may come."""
        left, self._left = self._left, b""
        return left
