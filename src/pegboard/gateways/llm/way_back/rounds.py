"""Asking again until an answer is for the client: the one part of the way back that does I/O."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from pegboard.gateways.llm.codec import Codec, Observation, Usage
from pegboard.gateways.llm.coding import INFLATING
from pegboard.gateways.llm.transfer import Answering, content_coding
from pegboard.gateways.llm.upstream import Answer, Headers
from pegboard.gateways.llm.way_back.edits import loaded, written
from pegboard.gateways.llm.way_back.wire import Document, Joiner, RoundTrip

Send = Callable[[bytes], AbstractAsyncContextManager[Answer]]
"""Sends a body to the provider."""
SEARCHES = b"x-pegboard-searches"
OF_THE_BODY = frozenset({b"content-length", b"content-encoding", b"etag", b"content-md5", b"digest"})
"""Headers of an answer that are true of its bytes alone."""


@dataclass(slots=True, kw_only=True)
class Rounds:
    """One request, asked as often as it takes. ``about`` are the gateway's own headers; ``used`` is what the provider
    counted of all answers, where it said so."""

    way: RoundTrip
    codec: Codec
    send: Send
    answering: Answering
    about: Headers
    status: int = 0
    used: Usage | None = None
    answers: list[Document] = field(default_factory=list)
    joiner: Joiner | None = None

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that the client is to call."""
        calls = self.way.format.calls(self.answers[-1]) if self.answers else []
        return tuple(call.name for call in calls if not self.way.hides(call.name))

    async def run(self) -> None:
        """Raises UpstreamError."""
        again = True
        while again:
            async with self.send(self.way.body()) as answer:
                self.status = self.status if self.joiner else answer.status
                again = await self._one(answer)
            if again:
                await self.way.answer(self.answers[-1])
        await self.answering.end()

    async def _one(self, answer: Answer) -> bool:
        """Whether it is to be asked again; if not, the client has it all."""
        kind = _header(answer, b"content-type").partition(";")[0].strip().lower()
        if self.joiner is not None and (answer.status >= 300 or kind != "text/event-stream"):
            await self.answering.more(self.joiner.failed(await _whole(answer)))
            return False
        if answer.status >= 300 or content_coding(answer.headers) not in ("", "identity", *INFLATING):
            return await self._passed(answer)
        if kind == "text/event-stream":
            return await self._streamed(answer)
        return await self._read(answer)

    async def _passed(self, answer: Answer) -> bool:
        await self.answering.begin(answer.status, [*answer.headers, *self.about, *self._searches()])
        async for piece in answer.pieces:
            await self.answering.more(piece)
        return False

    async def _streamed(self, answer: Answer) -> bool:
        if self.joiner is None:
            self.joiner = self.way.format.joiner()
            await self.answering.begin(answer.status, [*_of_any_body(answer.headers), *self.about])
        joiner = self.joiner
        joiner.begin(self.way.held)
        observer = self.codec.observe("text/event-stream")
        seen: list[Observation] = []
        async for piece in _plain(answer):
            seen += observer.feed(piece)
            if passing := joiner.feed(piece):
                await self.answering.more(passing)
        self._count([*seen, *observer.finish()])
        document = joiner.close()
        if document is not None:
            self.answers.append(document)
            if self.way.goes_on(document):
                return True
        await self.answering.more(joiner.finish(self.way.hides))
        return False

    async def _read(self, answer: Answer) -> bool:
        data = await _whole(answer)
        document = loaded(data)
        if document is not None:
            observer = self.codec.observe("application/json")
            self._count([*observer.feed(data), *observer.finish()])
            self.answers.append(document)
            if self.way.goes_on(document):
                return True
            data = self._told(data)
        headers = [*_of_any_body(answer.headers), (b"content-length", str(len(data)).encode())]
        await self.answering.begin(answer.status, [*headers, *self.about, *self._searches()])
        await self.answering.more(data)
        return False

    def _count(self, seen: Sequence[Observation]) -> None:
        """The last word of an answer on what it used is the whole."""
        told = next((each for each in reversed(seen) if isinstance(each, Usage)), None)
        if told is not None:
            self.used = told if self.used is None else self.used.plus(told)

    def _told(self, data: bytes) -> bytes:
        """What the client gets of the answers; an only one that nothing is hidden of is as it came."""
        merged = self.way.format.merged(self.answers, self.way.hides)
        return data if merged == self.answers[-1] else written(merged)

    def _searches(self) -> Headers:
        return [(SEARCHES, str(self.way.searches).encode())]


def _header(answer: Answer, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in answer.headers if name.lower() == wanted), "")


def _of_any_body(headers: Headers) -> Headers:
    return [each for each in headers if each[0].lower() not in OF_THE_BODY]


async def _whole(answer: Answer) -> bytes:
    return b"".join([piece async for piece in _plain(answer)])


async def _plain(answer: Answer) -> AsyncIterator[bytes]:
    """The pieces without the content coding, which is one of `INFLATING` if any: the request asks for none."""
    coding = content_coding(answer.headers)
    if coding not in INFLATING:
        async for piece in answer.pieces:
            yield piece
        return
    inflater = zlib.decompressobj(INFLATING[coding])
    async for piece in answer.pieces:
        yield inflater.decompress(piece)
    yield inflater.flush()
