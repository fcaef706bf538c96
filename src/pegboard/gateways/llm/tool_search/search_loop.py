"""Repeats a request until an answer is for the client: the only part of tool search with I/O."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import reduce

from pegboard.errors import NotCarriedOut, UpstreamError
from pegboard.gateways.llm.formats.edits import loaded, written
from pegboard.gateways.llm.formats.json_reader import text_of
from pegboard.gateways.llm.formats.protocol import Codec, KeptSearches, Observation, OpenCall
from pegboard.gateways.llm.formats.registry import history_of
from pegboard.gateways.llm.formats.streams import STREAMS
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Joiner, RoundTrip
from pegboard.gateways.llm.proxy.http_bodies import ResponseWriter, content_coding
from pegboard.gateways.llm.proxy.model_round import ModelRound
from pegboard.gateways.llm.proxy.model_upstream import Answer, Headers
from pegboard.gateways.llm.tool_search.reference_round_trip import ReferenceRoundTrip
from pegboard.inflate import WINDOWS, inflated
from pegboard.token_usage import TokenUsage

Send = Callable[[bytes], AbstractAsyncContextManager[Answer]]
"""Sends a body to the provider."""
Settle = Callable[[], Awaitable[None]]
"""Saves what the next request needs, before the client has the end of the answer and can send one."""


async def _nothing() -> None:
    """Nothing has to be saved."""


SEARCHES = b"x-pegboard-searches"
MOST_ANSWER = 64 * 1024 * 1024
"""Decoded bytes of an answer that are buffered to see whether the model searches."""
OF_THE_BODY = frozenset({b"content-length", b"content-encoding", b"etag", b"content-md5", b"digest"})
"""Response headers that describe the exact bytes of the body."""


@dataclass(slots=True, kw_only=True)
class ToolSearchLoop:
    """One request, repeated as often as needed. ``sent`` says what came of each repetition, while it comes;
    ``left_open`` are calls in the last answer whose results the client's next request brings."""

    round_trip: RoundTrip
    codec: Codec
    send: Send
    writer: ResponseWriter
    gateway_headers: Headers
    settle: Settle = _nothing
    status: int = 0
    sent: list[ModelRound] = field(default_factory=list)
    answers: list[Document] = field(default_factory=list)
    left_open: list[OpenCall] = field(default_factory=list)
    joiner: Joiner | None = None

    @property
    def used(self) -> TokenUsage | None:
        """The sum of the provider's token counts, if given."""
        counted = [each.used for each in self.sent if each.used is not None]
        return reduce(TokenUsage.plus, counted) if counted else None

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that the client has to call."""
        return tuple(call.name for call in self._for_client())

    @property
    def calls(self) -> Mapping[str, str]:
        """Their names by their ids, if the format has ids."""
        return {call.id: call.name for call in self._for_client() if call.id}

    def _for_client(self) -> list[FunctionCall]:
        calls = self.round_trip.format.calls(self.answers[-1]) if self.answers else []
        return [call for call in calls if not self.round_trip.hides(call.name)]

    @property
    def answer_id(self) -> str:
        """The provider's id of the last answer."""
        return text_of(self.answers[-1].get("id")) if self.answers else ""

    @property
    def kept(self) -> KeptSearches | None:
        """What our searches left in the provider's history."""
        if not self.answers or not isinstance(self.round_trip, ReferenceRoundTrip):
            return None
        return self.round_trip.kept()

    @property
    def earlier_ids(self) -> tuple[str, ...]:
        """The provider's ids of the answers before, which led to further requests."""
        ids = (text_of(answer.get("id")) for answer in self.answers[:-1])
        return tuple(id_ for id_ in ids if id_ not in ("", self.answer_id))

    async def run(self) -> None:
        """Raises UpstreamError."""
        again = True
        while again:
            again = await self._sent(self.round_trip.body())
            if again:
                await self.round_trip.answer(self.answers[-1])
        await self.writer.end()

    async def _sent(self, body: bytes) -> bool:
        """Whether to repeat the request, which has been sent with this body."""
        self.sent.append(ModelRound(asked=len(body)))
        try:
            async with self.send(body) as answer:
                self.status = self.status if self.joiner else answer.status
                self.sent[-1].status = answer.status
                return await self._one(answer)
        except NotCarriedOut:
            self.sent.pop()
            raise

    async def _one(self, answer: Answer) -> bool:
        """Whether to repeat the request; if not, the client has the whole answer."""
        kind = _header(answer, b"content-type").partition(";")[0].strip().lower()
        self.sent[-1].streamed = kind in STREAMS
        if self.joiner is not None and (answer.status >= 300 or kind not in STREAMS):
            await self.writer.more(self.joiner.failed(await _whole(answer, self.sent[-1])))
            return False
        if answer.status >= 300 or content_coding(answer.headers) not in ("", "identity", *WINDOWS):
            return await self._passed(answer)
        if kind in STREAMS:
            return await self._streamed(answer, kind)
        return await self._read(answer)

    async def _passed(self, answer: Answer) -> bool:
        await self.writer.begin(answer.status, [*answer.headers, *self.gateway_headers, *self._searches()])
        async for piece in answer.pieces:
            self.sent[-1].feed(piece)
            await self.writer.more(piece)
        self.sent[-1].ended = True
        return False

    async def _streamed(self, answer: Answer, kind: str) -> bool:
        if self.joiner is None:
            self.joiner = self.round_trip.format.joiner()
            await self.writer.begin(answer.status, [*_of_any_body(answer.headers), *self.gateway_headers])
        joiner = self.joiner
        joiner.begin(self.round_trip.held)
        observer = self.codec.observe(kind)
        async for piece in _plain(answer, self.sent[-1]):
            self._count(observer.feed(piece))
            if passing := joiner.feed(piece):
                await self.writer.more(passing)
        self._count(observer.finish())
        self.sent[-1].ended = True
        document = joiner.close()
        if document is not None:
            self.answers.append(document)
            if self.round_trip.goes_on(document):
                return True
            await self._leave_open(document)
        await self.settle()
        await self.writer.more(joiner.finish(self.round_trip.hides))
        return False

    async def _read(self, answer: Answer) -> bool:
        data = await _whole(answer, self.sent[-1])
        document = loaded(data)
        if document is not None:
            observer = self.codec.observe("application/json")
            self._count([*observer.feed(data), *observer.finish()])
            self.answers.append(document)
            if self.round_trip.goes_on(document):
                return True
            await self._leave_open(document)
            data = self._told(data)
            await self.settle()
        headers = [*_of_any_body(answer.headers), (b"content-length", str(len(data)).encode())]
        await self.writer.begin(answer.status, [*headers, *self.gateway_headers, *self._searches()])
        await self.writer.more(data)
        return False

    async def _leave_open(self, last: Document) -> None:
        """Note what the gateway's calls beside calls for the client find: the provider keeps them, and the request that
        continues this answer brings their results."""
        history = history_of(self.codec)
        for kind, call in history.left_open(last, self.round_trip.hides) if history else ():
            found = await self.round_trip.found_by(call)
            self.left_open.append(OpenCall(id=call.id, kind=kind, found=found))

    def _count(self, seen: Iterable[Observation]) -> None:
        """The last usage of an answer is its total."""
        for each in seen:
            if isinstance(each, TokenUsage):
                self.sent[-1].used = each

    def _told(self, data: bytes) -> bytes:
        """What the client gets; a single answer without hidden calls stays unchanged."""
        merged = self.round_trip.format.merged(self.answers, self.round_trip.hides)
        return data if merged == self.answers[-1] else written(merged)

    def _searches(self) -> Headers:
        return [(SEARCHES, str(self.round_trip.searches).encode())]


def _header(answer: Answer, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in answer.headers if name.lower() == wanted), "")


def _of_any_body(headers: Headers) -> Headers:
    return [each for each in headers if each[0].lower() not in OF_THE_BODY]


async def _whole(answer: Answer, of: ModelRound) -> bytes:
    data = b"".join([piece async for piece in _plain(answer, of)])
    of.ended = True
    return data


async def _plain(answer: Answer, of: ModelRound) -> AsyncIterator[bytes]:
    """The chunks without their content coding, which is one of `WINDOWS`, if any: the request asks for none. They are
    noted as what has come ``of`` the request.

    Raises UpstreamError if the answer is too large or its coding is invalid.
    """
    coding, size = content_coding(answer.headers), 0
    try:
        async for piece in inflated(answer.pieces, coding) if coding in WINDOWS else answer.pieces:
            size += len(piece)
            of.feed(piece)
            if size > MOST_ANSWER:
                raise UpstreamError("", f"The answer has more than {MOST_ANSWER:,} bytes.", remedy="Ask for less.")
            yield piece
    except zlib.error as error:
        raise UpstreamError("", "The answer does not match its content coding.") from error
