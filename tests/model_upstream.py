"""A provider of models for tests, in this process: it notes what it was sent, and answers as it was told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

ANSWER = b'{"id": "chatcmpl-1", "object": "chat.completion", "choices": []}'
FIRST = b'data: {"id": "chatcmpl-1", "choices": []}\n\n'
LAST = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Sent:
    """A request as it arrived, the names of its headers in small letters."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def whole(self) -> str:
        return f"{self.method} {self.target} {dict(self.headers)} {self.body.decode('utf-8', 'replace')}"


@dataclass
class ModelUpstream:
    """``mood`` says how it answers: ok, stream (whose end waits for ``release``), error, cut or mute.

    ``body``, ``kind`` and ``headers`` are a good answer, its media type and more of its headers; the ``bodies`` come
    before it and before any mood, one a request.
    """

    url: str = ""
    mood: str = "ok"
    body: bytes = ANSWER
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def tools(self) -> list[str]:
        """The names of the tools in the last request."""
        return [tool["function"]["name"] for tool in json.loads(self.sent[-1].body).get("tools", [])]

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.sent.append(Sent(request.method, request.raw_path, headers, body))
        match "ok" if self.bodies else self.mood:
            case "error":
                return web.json_response({"error": {"message": "overloaded"}}, status=529)
            case "mute":
                await self.release.wait()
            case "stream" | "cut":
                return await self._streamed(request)
        said = self.bodies.pop(0) if self.bodies else self.body
        return web.Response(body=said, content_type=self.kind, headers=self.headers)

    async def _streamed(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(FIRST)
        self.begun.set()
        if self.mood == "cut":
            assert request.transport is not None
            request.transport.abort()
            return answer
        await self.release.wait()
        await answer.write(LAST)
        return answer


@asynccontextmanager
async def model_upstream() -> AsyncIterator[ModelUpstream]:
    upstream = ModelUpstream()
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", upstream.answer)
    runner = web.AppRunner(application, shutdown_timeout=0, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    upstream.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield upstream
    finally:
        upstream.release.set()
        await runner.cleanup()
