"""Bodies and headers on their way through: read as they come, handed on as they come."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from starlette.types import Receive, Send

from pegboard.errors import PegboardError
from pegboard.gateways.llm.codec import Codec, Observation, Observer, Started, ToolCalled, Usage
from pegboard.gateways.llm.coding import INFLATING
from pegboard.gateways.llm.filtering import Rewritten
from pegboard.gateways.llm.refusals import refusal
from pegboard.gateways.llm.selection import Filtered
from pegboard.gateways.llm.upstream import Answer, Body, Headers
from pegboard.settings.llm import Format

MOST_REASON = 200


class TooLarge(PegboardError):  # noqa: N818
    code = "too_large"
    http_status = 413


class HungUp(Exception):  # noqa: N818
    """The client has gone."""


class Reading:
    """A request's body, of at most so many bytes."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._read = 0
        self._ended = asyncio.Event()
        self._failure: Exception | None = None

    async def whole(self) -> bytes:
        """All of it. Raises TooLarge, HungUp."""
        parts = [part async for part in self._pieces()]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def as_it_comes(self, headers: Headers) -> Body:
        """In pieces; nothing where the request has no body."""
        if {name.lower() for name, _ in headers} & {b"content-length", b"transfer-encoding"}:
            return self._pieces()
        self._ended.set()
        return None

    async def unless_hung_up(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it, until the client has gone: then what is under way is broken off, and HungUp raised."""
        working, watching = asyncio.create_task(work), asyncio.create_task(self._until_hung_up())
        try:
            await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise HungUp
            if self._failure is not None:  # the HTTP library says only that the body did not come
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
                self._failure = HungUp()
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

    async def _until_hung_up(self) -> None:
        """While the body is being read, that is where it shows."""
        await self._ended.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Answering:
    """What the client has been sent so far."""

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

    async def refuse(self, error: PegboardError, format_: Format) -> None:
        """Say what went wrong. In the middle of an answer that cannot be said: it breaks off, as the provider's did."""
        if self._begun:
            return
        body = refusal(error, error.http_status, format_)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.begin(error.http_status, [*headers, (b"x-pegboard-error", error.code.encode())])
        await self.more(body)
        await self.end()


class Following:
    """Notes what an answer says of itself: its id, the tools that the model calls, and what it was billed by."""

    def __init__(self, codec: Codec | None, answer: Answer) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in answer.headers}
        coding = content_coding(answer.headers)
        readable = codec is not None and answer.status < 300 and coding in ("", "identity", *INFLATING)
        self._observer: Observer | None = None
        if codec is not None and readable:
            self._observer = codec.observe(headers.get(b"content-type", ""))
        self._inflater = zlib.decompressobj(INFLATING[coding]) if coding in INFLATING else None
        self.id = ""
        self.called: list[str] = []
        self.used: Usage | None = None

    def feed(self, piece: bytes) -> None:
        if self._observer is None:
            return
        try:
            plain = piece if self._inflater is None else self._inflater.decompress(piece)
        except zlib.error:
            self._observer = None
            return
        self._note(self._observer.feed(plain))

    def finish(self) -> None:
        if self._observer is not None:
            self._note(self._observer.finish())

    def _note(self, seen: Any) -> None:
        observation: Observation
        for observation in seen:
            match observation:
                case Started(id=found):
                    self.id = found
                case ToolCalled(name=name):
                    self.called.append(name)
                case Usage():
                    self.used = observation


def going(headers: Headers, rewritten: Rewritten, *, followed: bool) -> Headers:
    """The headers of a request that goes on. Where the answer is followed, it may be compressed as we can read."""
    if rewritten.body is not None:
        headers = [each for each in headers if each[0].lower() != b"content-encoding"]
    if not followed:
        return headers
    if rewritten.way is not None:
        return [*(each for each in headers if each[0].lower() != b"accept-encoding"), (b"accept-encoding", b"identity")]
    return [(name, _readable(value) if name.lower() == b"accept-encoding" else value) for name, value in headers]


def about(rewritten: Rewritten, added_ms: float) -> Headers:
    """What the answer's headers say of what was done to the request; nothing of one that has no tools to pick."""
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


def content_coding(headers: Headers) -> str:
    """In small letters; empty where there is none."""
    coding = next((value for name, value in headers if name.lower() == b"content-encoding"), b"")
    return coding.decode("latin-1").strip().lower()


def _readable(accepted: bytes) -> bytes:
    return b"gzip" if b"gzip" in accepted.lower() else b"identity"


def _cache(filtered: Filtered) -> str:
    """What became of the tools that the conversation had, and why."""
    said = [filtered.way, filtered.because] if filtered.because else []
    if filtered.verdict is not None:
        narrowing = "" if filtered.narrowed is None else "all are sent, some allowed: "
        said = [filtered.verdict.kind, narrowing + filtered.verdict.reason]
    if filtered.no_one_tool:
        said.append(f"not by call_tool: {filtered.no_one_tool}")
    return "; ".join(said)
