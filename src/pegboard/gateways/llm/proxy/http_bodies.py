"""Bodies and headers of requests and responses: read as they arrive, forwarded as they arrive."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Send

from pegboard.caller_limits import RateLimitReached
from pegboard.errors import PegboardError, RequestNotUnderstood
from pegboard.gateways.llm.formats.model_providers import ModelProvider
from pegboard.gateways.llm.formats.protocol import AnswerStarted, Codec, Observation, Observer, ToolCalled
from pegboard.gateways.llm.formats.registry import error_body
from pegboard.gateways.llm.formats.streams import STREAMS, events_in, tokens_of
from pegboard.gateways.llm.proxy.body_memory import MemoryShare, NoMemory
from pegboard.gateways.llm.proxy.budget_errors import ModelBudgetReached
from pegboard.gateways.llm.proxy.model_upstream import Answer, Body, Headers
from pegboard.gateways.llm.selection.filter import RewrittenRequest
from pegboard.gateways.llm.selection.policy import Filtered
from pegboard.inflate import WINDOWS, Inflater
from pegboard.token_usage import TokenUsage

MOST_REASON = 200
MOST_INFLATED = 16 * 1024 * 1024
MOST_RATIO = 50
"""Compressed answers are observed up to this many bytes, or this many times their compressed size: text shrinks at best
20 times."""


class TooLarge(PegboardError):  # noqa: N818
    code = "too_large"
    http_status = 413


class ClientDisconnected(Exception):  # noqa: N818
    """The client has disconnected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBody:
    """A body that was read completely."""

    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadBody:
    """A body that passes unread, and the reason."""

    body: AsyncIterator[bytes]
    why: PegboardError


class RequestReader:
    """Reads a request's body of at most ``most`` bytes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._read = 0
        self._ended = asyncio.Event()
        self._failure: Exception | None = None

    async def first(self, most: int, share: MemoryShare, length: int = 0) -> WholeBody | UnreadBody:
        """The whole body if it has at most ``most`` bytes and there is memory for it; else the rest as a stream.

        ``length`` is the request's Content-Length, if given. Raises TooLarge, ClientDisconnected.
        """
        parts: deque[bytes] = deque()
        pieces, size = self._pieces(), 0
        try:
            _check(length, most)
            async for part in pieces:
                parts.append(part)
                size += len(part)
                _check(size, most)
                share.take(len(part))
        except (RequestNotUnderstood, NoMemory) as why:
            return UnreadBody(body=_onwards(parts, pieces, share), why=why)
        return WholeBody(body=parts[0] if len(parts) == 1 else b"".join(parts))

    def as_it_comes(self, headers: Headers) -> Body:
        """The body as a stream; None if the request has no body."""
        if {name.lower() for name, _ in headers} & {b"content-length", b"transfer-encoding"}:
            return self._pieces()
        self._ended.set()
        return None

    async def check(self) -> None:
        """Raises ClientDisconnected if the client has gone since its body was read."""
        if not self._ended.is_set():
            return
        watching = asyncio.create_task(self._disconnected())
        await asyncio.sleep(0)
        gone = watching.done()
        watching.cancel()
        if gone:
            raise ClientDisconnected

    async def until_disconnect(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work until the client disconnects; then cancel it and raise ClientDisconnected."""
        working, watching = asyncio.create_task(work), asyncio.create_task(self._disconnected())
        try:
            await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ClientDisconnected
            if self._failure is not None:  # the HTTP library only reports a missing body
                raise self._failure
            working.result()
        finally:
            working.cancel()
            watching.cancel()
            await asyncio.wait((working, watching))

    async def _pieces(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._failure = ClientDisconnected()
                raise self._failure
            piece = message.get("body", b"")
            self._read += len(piece)
            if self._read > self._most:
                self._failure = TooLarge(f"The body has more than {self._most:,} bytes.", remedy="Raise llm.most_body.")
                raise self._failure
            more = message.get("more_body", False)
            if piece:
                yield piece
        self._ended.set()

    async def _disconnected(self) -> None:
        """Waits until the body has been read; before that, reading it detects the disconnect."""
        await self._ended.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _check(size: int, most: int) -> None:
    if size > most:
        raise RequestNotUnderstood(f"The body has more than {most:,} bytes.", remedy="Raise llm.most_filtered.")


async def _onwards(parts: deque[bytes], pieces: AsyncIterator[bytes], share: MemoryShare) -> AsyncIterator[bytes]:
    """A body that was partly read; the parts are released once they are sent."""
    while parts:
        yield parts.popleft()
    share.give_back()
    async for piece in pieces:
        yield piece


class ResponseWriter:
    """Writes the response to the client."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False

    async def begin(self, status: int, headers: Headers) -> None:
        self._begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def more(self, piece: bytes) -> None:
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, error: PegboardError, provider: ModelProvider) -> None:
        """Send an error. If the answer has begun that is impossible: it breaks off, as the provider's did."""
        if self._begun:
            return
        body = error_body(error, error.http_status, provider)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if isinstance(error, RateLimitReached | ModelBudgetReached) and error.retry_after is not None:
            headers.append((b"retry-after", str(error.retry_after).encode()))
        if isinstance(error, ModelBudgetReached):
            headers.append((b"x-should-retry", b"false"))  # the SDKs of OpenAI and Anthropic would try again at once
        await self.begin(error.http_status, [*headers, (b"x-pegboard-error", error.code.encode())])
        await self.more(body)
        await self.end()


class ResponseObserver:
    """Collects an answer's id, the tools that the model calls, and its token usage."""

    def __init__(self, codec: Codec | None, answer: Answer) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in answer.headers}
        coding = content_coding(answer.headers)
        readable = codec is not None and answer.status < 300 and coding in ("", "identity", *WINDOWS)
        self._observer: Observer | None = None
        if codec is not None and readable:
            self._observer = codec.observe(headers.get(b"content-type", ""))
        self._inflater = Inflater(coding) if coding in WINDOWS else None
        self._came = self._inflated = self._events = 0
        self.streamed = headers.get(b"content-type", "").partition(";")[0].strip().lower() in STREAMS
        self.id = ""
        self.called: list[str] = []
        self.calls: dict[str, str] = {}
        """Their names by their ids, if the format has ids."""
        self.used: TokenUsage | None = None

    @property
    def said(self) -> int:
        """About how many tokens came."""
        return tokens_of(max(self._came, self._inflated), self._events, streamed=self.streamed)

    def feed(self, piece: bytes) -> None:
        self._events += events_in(piece)
        if self._observer is None or self._inflater is None:
            self._came += len(piece)
        if self._observer is None:
            return
        if self._inflater is None:
            self._note(self._observer.feed(piece))
            return
        self._came += len(piece)
        try:
            for plain in self._inflater.pieces(piece):
                self._inflated += len(plain)
                self._events += events_in(plain)
                if self._inflated > max(MOST_INFLATED, MOST_RATIO * self._came):
                    self._observer = None  # still forwarded, but no longer observed
                    return
                self._note(self._observer.feed(plain))
        except zlib.error:
            self._observer = None

    def finish(self) -> None:
        if self._observer is not None:
            self._note(self._observer.finish())

    def _note(self, seen: Any) -> None:
        observation: Observation
        for observation in seen:
            match observation:
                case AnswerStarted(id=found):
                    self.id = found
                case ToolCalled(name=name, id=call):
                    self.called.append(name)
                    self.calls |= {call: name} if call else {}
                case TokenUsage():
                    self.used = observation


def outgoing_headers(headers: Headers, rewritten: RewrittenRequest, *, followed: bool) -> Headers:
    """The headers of the request to send. If the answer is observed, only codings that can be decoded are accepted."""
    if rewritten.body is not None:
        headers = [each for each in headers if each[0].lower() != b"content-encoding"]
    if not followed:
        return headers
    if rewritten.round_trip is not None:
        return [*(each for each in headers if each[0].lower() != b"accept-encoding"), (b"accept-encoding", b"identity")]
    return [(name, _readable(value) if name.lower() == b"accept-encoding" else value) for name, value in headers]


def gateway_headers(rewritten: RewrittenRequest, added_ms: float) -> Headers:
    """The response headers that describe what was done to the request; none if it has no tools to select."""
    if rewritten.outcome == "passed":
        return []
    said = {"filter": rewritten.outcome, "time-ms": f"{added_ms:.2f}"}
    if rewritten.reason:
        said["reason"] = json.dumps(rewritten.reason[:MOST_REASON])[1:-1]
    if rewritten.request is not None and rewritten.filtered is None and rewritten.outcome != "shadow":
        offered = len(rewritten.request.tools)
        said["tools"] = f"{offered}/{offered}"
    elif rewritten.request is not None and rewritten.filtered is not None:
        filtered = rewritten.filtered
        said["tools"] = f"{len(filtered.kept.places)}/{len(rewritten.request.tools)}"
        said["tokens"] = f"{filtered.tokens_after}/{filtered.tokens_before}"
        if filtered.decision is not None:
            said["decision"] = filtered.decision.turn_id
        if cache := _cache(filtered):
            said["cache"] = cache
    return [(f"x-pegboard-{name}".encode(), value.encode("latin-1", "replace")) for name, value in said.items()]


def content_length(headers: Headers) -> int:
    """The Content-Length; 0 if it is missing."""
    said = next((value for name, value in headers if name.lower() == b"content-length"), b"")
    return int(said) if said.isdigit() else 0


def content_coding(headers: Headers) -> str:
    """The content coding in lowercase; empty if there is none."""
    coding = next((value for name, value in headers if name.lower() == b"content-encoding"), b"")
    return coding.decode("latin-1").strip().lower()


def _readable(accepted: bytes) -> bytes:
    return b"gzip" if b"gzip" in accepted.lower() else b"identity"


def _cache(filtered: Filtered) -> str:
    """What happened to the conversation's tools, and why."""
    said = [filtered.way, filtered.because] if filtered.because else []
    if filtered.verdict is not None:
        narrowing = "" if filtered.narrowed is None else "all are sent, some are allowed: "
        said = [filtered.verdict.kind, narrowing + filtered.verdict.reason]
    if filtered.no_call_tool:
        said.append(f"not by call_tool: {filtered.no_call_tool}")
    if filtered.instead:
        said.append(f"in place of defer: {filtered.instead}")
    return "; ".join(said)
