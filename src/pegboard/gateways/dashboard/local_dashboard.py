"""The dashboard over the state of this machine, without a gateway: for whoever opens it with its ticket."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import RedirectResponse
from starlette.types import Receive, Scope, Send

from pegboard.compose import opened_parts
from pegboard.errors import ConfigError
from pegboard.gateways.dashboard.dashboard_app import PATH, SIGN_IN, DashboardApp, open_dashboard
from pegboard.gateways.mcp.gateway.host import open_host
from pegboard.gateways.serve import listen
from pegboard.settings import Settings
from pegboard.stores import MemorySessions
from pegboard.telemetry.activity_recorder import ActivityRecorder

NAMES = ("127.0.0.1:*", "localhost:*")


def local_settings(settings: Settings, port: int) -> Settings:
    """The settings for one person on this machine. Servers start only where their tools are not known from before."""
    changes = {"port": port, "lazy": True, "allowed_hosts": (), "start_wait": 0.0}
    return settings.for_one_person.model_copy(update=changes)


async def serve_dashboard(settings: Settings, *, started: Callable[[str], None]) -> None:
    """Serve until a signal ends it; ``started`` gets the address, with the ticket that opens it once.

    A browser sends no fragment of an address, so that the ticket is in no log. Raises ConfigError.
    """
    with listen(settings) as listening:
        ticket = secrets.token_urlsafe(32)
        async with AsyncExitStack() as stack:
            parts = await stack.enter_async_context(opened_parts(settings))
            recorder = None
            if settings.activity.keep == "store" and parts.activity is not None:
                recorder = await stack.enter_async_context(ActivityRecorder().running(parts.activity))
            own = replace(parts, sessions=MemorySessions(parts.clock), replicas=None)
            host = await stack.enter_async_context(open_host(settings, own))
            security = TransportSecuritySettings(
                allowed_hosts=list(NAMES), allowed_origins=[f"http://{name}" for name in NAMES]
            )
            server = uvicorn.Server(uvicorn.Config(lambda *_: None, log_config=None, lifespan="off", access_log=False))
            dashboard = open_dashboard(host, recorder, security, lambda: server.should_exit, ticket=ticket)
            if dashboard is None:
                raise ConfigError(
                    "The dashboard needs Jinja2, which is not installed.",
                    remedy="Install it with `pip install 'pegboard[ui]'`.",
                )
            server.config.app = _Only(dashboard)
            started(f"http://127.0.0.1:{listening.getsockname()[1]}{SIGN_IN}#{ticket}")
            await server.serve(sockets=[listening])


class _Only:
    """The dashboard alone: every other address leads to it."""

    def __init__(self, dashboard: DashboardApp) -> None:
        self._dashboard = dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (scope["path"] == PATH or scope["path"].startswith(f"{PATH}/")):
            await self._dashboard(scope, receive, send)
        elif scope["type"] == "http":
            await RedirectResponse(PATH)(scope, receive, send)
