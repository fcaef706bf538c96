"""`pegboard serve`: MCP and models for many clients, until a signal ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import uvicorn

from pegboard import __version__, operating_system
from pegboard.clock import SystemClock
from pegboard.collector import keep_loaded, stop_collecting
from pegboard.compose import Parts, events_and, opened_parts
from pegboard.errors import ConfigError
from pegboard.gateways.asgi import Front
from pegboard.gateways.connections import Connections
from pegboard.gateways.dashboard.dashboard_app import open_dashboard
from pegboard.gateways.drain import DrainableServer
from pegboard.gateways.events_endpoint import EventFeed, EventFeedApp
from pegboard.gateways.http_api.api_app import open_api
from pegboard.gateways.llm.build import open_models
from pegboard.gateways.llm.proxy.current_app import TakeUp
from pegboard.gateways.mcp.attach.serve_discovery import announce, health, running_folder
from pegboard.gateways.mcp.cluster.peers import Peers, address
from pegboard.gateways.mcp.gateway.host import Host, open_host
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.mcp.transport.http import PATH, HttpDoor
from pegboard.gateways.origins import OriginCheck
from pegboard.gateways.readiness import Readiness, Warming
from pegboard.model import Replica
from pegboard.model_prices import PriceTable
from pegboard.protocols import EventSink
from pegboard.settings import Settings
from pegboard.telemetry.activity_recorder import ActivityRecorder
from pegboard.telemetry.event_log import AccessLog
from pegboard.telemetry.metrics import Metrics
from pegboard.telemetry.otel.otel_lifetime import opened_otel
from pegboard.telemetry.otel.prometheus_points import points_of

LOGGER = logging.getLogger(__name__)

LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
ANY = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
SWITCH_SECONDS = 0.001
"""Seconds that one thread, e.g. one that parses thousands of tools, may delay the others (5 ms by default)."""
NEW_OBJECTS = 10_000
"""Objects that come to be before the garbage collector looks through them (700 by default, 2,000 from Python 3.14 on).
A request of a hundred tools is some thousand, which end with it: they would be looked through again and again, and
with them, every few seconds, all that the process has."""
GRACE_SECONDS = 3
"""Seconds that requests other than model requests have to finish after a signal."""
IDLE_SECONDS = 75
"""Seconds that an idle connection stays open. Clients reuse theirs for 4 (undici) to 15 s (aiohttp), and should be
the ones that close: else a request may meet a connection that is being closed. uvicorn's own 5 s are httpx's too."""


async def serve_http(settings: Settings, source: Source, *, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve on streamable HTTP until SIGTERM or SIGINT; ``started`` gets the address once the server listens.

    `pegboard mcp` with the same files as ``source`` attaches to this process. Raises ConfigError if the address cannot
    be listened on.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
    async with serving(settings, source, started=started) as server:
        keep_loaded()
        with server.signals(), announce(server.url, source.files, running_folder()):
            await server.until_end()
        stop_collecting()


@asynccontextmanager
async def serving(
    settings: Settings,
    source: Source,
    *,
    started: Callable[[str], None] = lambda url: None,
    sinks: Sequence[EventSink] = (),
    **replaced: Any,
) -> AsyncIterator[DrainableServer]:
    """A server with everything behind it, ready to serve until its end. Parts can be replaced, and event sinks added.
    Raises ConfigError if the address cannot be listened on."""
    listening = listen(settings)
    if settings.host not in LOCAL and not settings.access and settings.issuer is None:
        LOGGER.warning(
            "Anyone who can reach %s:%d can call every tool: no token is required ([access]).",
            settings.host,
            settings.port,
        )
    if settings.host not in LOCAL and settings.llm.holds_keys and not settings.llm.keys:
        LOGGER.warning("Other machines cannot use the provider keys of this gateway without [llm.keys].")
    if settings.host in ANY and not settings.allowed_hosts:
        LOGGER.warning("Other machines are refused until allowed_hosts has the name by which they reach this one.")
    with listening:
        url = f"http://{_name(settings.host)}:{listening.getsockname()[1]}{PATH}"
        metrics = Metrics(__version__)
        own_prices = list(settings.activity.table.own)
        prices = PriceTable(settings.activity.table.known, own_prices)
        recorder = ActivityRecorder(prices) if settings.activity.keep != "off" else None
        async with AsyncExitStack() as stack:
            otel = await stack.enter_async_context(opened_otel(settings.otel, lambda: points_of(metrics.registry)))
            if otel is not None:
                metrics.count_traces(otel.tracer.sampler)
            more, feed = [each for each in (recorder, otel) if each is not None], EventFeed()
            events = events_and(AccessLog(), metrics, feed, *more, *sinks)
            given = {"events": events, "tracer": otel.tracer if otel is not None else None} | replaced
            parts = await stack.enter_async_context(opened_parts(settings, **given))
            if recorder is not None and parts.activity is not None:
                await stack.enter_async_context(recorder.running(parts.activity))
            host = await stack.enter_async_context(open_host(settings, parts))
            peers = await open_peers(stack, host, settings, listening.getsockname()[1])
            door = HttpDoor(host, health=lambda: health(source.files) | _servers(host), peers=peers)
            await stack.enter_async_context(door.running())

            def is_token(token: str) -> bool:
                return host.access.is_token(token)

            histograms = otel.histograms if otel is not None else None
            models = await stack.enter_async_context(
                open_models(settings, parts, is_token, histograms, host.open_contents)
            )
            api = await stack.enter_async_context(open_api(host, OriginCheck(door.security)))
            readiness = readiness_of(stack, settings, parts, peers, source)
            readiness.missed += [each.amiss for each in more]
            readiness.missed.append(lambda: _unavailable(host))
            dashboard = (
                open_dashboard(host, recorder, door.security, lambda: readiness.draining)
                if settings.dashboard
                else None
            )
            front = Front(
                door,
                models,
                door.security,
                api=api,
                dashboard=dashboard,
                readiness=readiness,
                metrics=metrics if settings.metrics else None,
                tracer=parts.tracer,
                feed=EventFeedApp(feed, host, door.security, lambda: readiness.draining),
                body_seconds=settings.body_timeout,
            )

            def prepare_prices(settings: Settings) -> TakeUp:
                async def take_up() -> None:
                    own_prices[:] = settings.activity.table.own

                return take_up

            def hang_up() -> None:
                door.hang_up()
                models.end_shadows()

            read_again = await stack.enter_async_context(source.followed(host, models.prepare, prepare_prices))
            connections = Connections(_most(settings.most_connections), settings.head_timeout)
            config = uvicorn.Config(front, http=connections.protocol(), **_options())
            yield DrainableServer(
                config,
                front,
                listening,
                url=url,
                wait=settings.drain_wait,
                timeout=settings.drain_timeout,
                started=started,
                hang_up=hang_up,
                read_again=read_again,
            )


def readiness_of(
    stack: AsyncExitStack, settings: Settings, parts: Parts, peers: Peers | None, source: Source
) -> Readiness:
    """The readiness checks. The encoder is loaded in the background; one that has a fallback is not needed itself."""
    readiness = Readiness()
    if settings.llm.serves:
        needed = Warming(parts.fallback or parts.encoder)
        readiness.needed.append(needed.amiss)
        warmings = [needed]
        if parts.fallback is not None:
            warmings.append(Warming(parts.encoder))
            readiness.missed.append(warmings[-1].amiss)
        for each in warmings:
            loading = asyncio.create_task(each.run())
            stack.callback(loading.cancel)
    if peers is not None:
        readiness.missed.append(lambda: "" if peers.store_answers else "The state store does not answer.")
    readiness.missed += [lambda: source.refused, parts.amiss]
    return readiness


async def open_peers(stack: AsyncExitStack, host: Host, settings: Settings, port: int) -> Peers | None:
    """The peers on the same store, with which this process is registered as long as the stack is open."""
    if host.parts.replicas is None:
        return None
    me = Replica(id=uuid4().hex, url=address(settings.replica_url, settings.host, port))
    return await stack.enter_async_context(Peers(host.parts.replicas, me, SystemClock()).known())


def listen(settings: Settings) -> socket.socket:
    """A socket on the configured address, with TCP_NODELAY.

    asyncio disables Nagle's algorithm only for sockets whose protocol is named; otherwise an answer in two parts would
    take 40 ms longer.
    """
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listening = socket.create_server((settings.host, settings.port), family=family)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"Cannot listen on {_name(settings.host)}:{settings.port}: {getattr(error, 'strerror', None) or error}.",
            remedy="Choose another with --port (0 picks a free one) or --host.",
        ) from error


def _most(wanted: int) -> int:
    """At most half of the file descriptors that the process may have: servers and providers need some too."""
    allowed = operating_system.most_descriptors()
    return wanted if allowed is None else max(1, min(wanted, allowed // 2))


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _options() -> dict[str, Any]:
    return {
        "lifespan": "off",
        "access_log": False,
        "log_config": None,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "timeout_keep_alive": IDLE_SECONDS,
        "server_header": False,
        "date_header": False,
        "ws": "none",
        "proxy_headers": False,
    }


def _unavailable(host: Host) -> str:
    """The servers that do not work, for `/readyz`; empty if there are none."""
    names = [each.name for each in host.fleet.status() if each.state in ("unhealthy", "signed_out")]
    return f"These servers do not work: {', '.join(sorted(names))}." if names else ""


def _servers(host: Host) -> dict[str, Any]:
    servers = {status.name: status.state for status in host.fleet.status()}
    return {"version": __version__, "servers": servers}
