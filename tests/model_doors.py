"""The LLM gateway for tests: served on loopback before a provider that is served there too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from anyio.from_thread import start_blocking_portal
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mock_providers import MockProviders
from pegboard.compose import default_parts
from pegboard.gateways.asgi import Front
from pegboard.gateways.llm.build import open_models
from pegboard.gateways.readiness import Readiness
from pegboard.gateways.serve import IDLE_SECONDS, listen
from pegboard.settings import Settings
from pegboard.stores import MemoryEvents
from processes import until

FORMATS = ("openai", "anthropic", "gemini", "bedrock", "cohere")
POLICIES = ("", "-off", "-picky")
"""How the names of upstreams end, so that rules can treat each differently."""
PATIENT = {"patience": 60, "filter_timeout": 60}
"""Nothing passes because its tools are still being embedded: tests are to see what is filtered."""
SMALL_TOO = {"least_tools": 0, "least_tokens": 0}
"""Nor because they are few: without a word on it, boards of any size are filtered here."""
FILTER_ONLY = SMALL_TOO | {"way_back": False}
"""Nor gets the model a search unless a test asks for it: most are about what is filtered."""


@dataclass
class Noting:
    """An application, and the headers of its answers that say what the gateway did."""

    app: ASGIApp
    said: list[dict[str, str]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                told = {name.decode(): value.decode() for name, value in message["headers"]}
                self.said.append({name: value for name, value in told.items() if name.startswith("x-pegboard-")})
            await send(message)

        await self.app(scope, receive, noting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """Its address without a path, what it answers, and what it tells."""

    address: str
    noting: Noting
    events: MemoryEvents
    mock: MockProviders

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    @property
    def said(self) -> dict[str, str]:
        """The gateway's headers on its last answer."""
        return self.noting.said[-1]


@asynccontextmanager
async def served(app: ASGIApp) -> AsyncIterator[str]:
    """The host and port at which an application answers."""
    options: dict[str, Any] = {"lifespan": "off", "log_config": None, "timeout_graceful_shutdown": 2, "ws": "none"}
    options["timeout_keep_alive"] = IDLE_SECONDS
    server = uvicorn.Server(uvicorn.Config(app, server_header=False, date_header=False, **options))
    with listen(Settings(port=0)) as listening:
        serving = asyncio.create_task(server._serve([listening]))
        await until(lambda: server.started)
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def model_door(
    upstreams: Mapping[str, Any],
    *,
    parts: Mapping[str, Any] | None = None,
    programs: str = "off",
    items: Mapping[str, Any] | None = None,
    **llm: Any,
) -> AsyncIterator[tuple[str, Noting, MemoryEvents]]:
    """The address of a gateway with these upstreams and options, the headers of its answers, and its events."""
    events = MemoryEvents()
    policy = FILTER_ONLY | dict(llm.get("policy", {}))
    chosen = {"upstreams": upstreams} | PATIENT | llm | {"policy": policy}
    settings = Settings(llm=chosen, programs=programs, items=items or {})
    made = default_parts(settings, **({"events": events} | dict(parts or {})))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(made.close)
        door = await stack.enter_async_context(open_models(settings, made))
        noting = Noting(Front(_nothing, door, TransportSecuritySettings(), readiness=Readiness()))
        yield await stack.enter_async_context(served(noting)), noting, events


@asynccontextmanager
async def gateway(*, parts: Mapping[str, Any] | None = None, **llm: Any) -> AsyncIterator[Gateway]:
    """A gateway before a mock of every provider."""
    mock = MockProviders()
    async with served(mock) as behind:
        upstreams = {
            format_ + policy: {"url": f"http://{behind}", "format": format_}
            for policy in POLICIES
            for format_ in FORMATS
        }
        async with model_door(upstreams, parts=parts, **llm) as (address, noting, events):
            yield Gateway(address=address, noting=noting, events=events, mock=mock)


@contextmanager
def gateway_beside(*, parts: Mapping[str, Any] | None = None, **llm: Any) -> Iterator[Gateway]:
    """The same for clients that wait: it runs in a thread of its own."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(gateway(parts=parts, **llm)) as found,
    ):
        yield found


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError(f"{scope['path']} is for models")
