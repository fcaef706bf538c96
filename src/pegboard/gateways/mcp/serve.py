"""`pegboard serve`: one board for many clients, until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

import uvicorn

from pegboard.errors import ConfigError
from pegboard.gateways.mcp.host import Host, open_host
from pegboard.gateways.mcp.http import PATH, HttpDoor
from pegboard.gateways.mcp.reload import Source
from pegboard.gateways.mcp.running import announce, health, running_folder
from pegboard.settings import Settings

LOGGER = logging.getLogger(__name__)

LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
ANY = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
GRACE_SECONDS = 3
"""Time that requests have to finish once a signal came."""


async def serve_http(settings: Settings, source: Source, *, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve on streamable HTTP until SIGTERM or SIGINT; ``started`` is told the address once it is listened on.

    `pegboard mcp` with the same files as ``source`` attaches to this process.
    Raises ConfigError for an address that cannot be listened on.
    """
    listening = listen(settings)
    if settings.host not in LOCAL:
        LOGGER.warning(
            "Whoever can reach %s:%d can call every tool: there are no accounts.", settings.host, settings.port
        )
    if settings.host in ANY and not settings.allowed_hosts:
        LOGGER.warning("Other machines are refused until allowed_hosts names what they call this one.")
    with listening:
        url = f"http://{_name(settings.host)}:{listening.getsockname()[1]}{PATH}"
        async with open_host(settings) as host:
            door = HttpDoor(host, health=lambda: health(source.files) | _servers(host))
            async with door.running():
                server = _Server(uvicorn.Config(door, **_options()), door, lambda: started(url))
                async with source.followed(host):
                    with _signals(server), announce(url, source.files, running_folder()):
                        await server.serve(sockets=[listening])


def listen(settings: Settings) -> socket.socket:
    """A socket on the configured address.

    Its connections do not wait to fill a packet: asyncio sees to that only for sockets whose protocol is named, and an
    answer in two parts would take 40 ms more.
    """
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listening = socket.create_server((settings.host, settings.port), family=family)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"Cannot listen on {_name(settings.host)}:{settings.port}: {getattr(error, 'strerror', None) or error}.",
            remedy="Choose another with --port (0 takes a free one) or --host.",
        ) from error


def _name(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _options() -> dict[str, Any]:
    return {
        "lifespan": "off",
        "access_log": False,
        "log_config": None,
        "timeout_graceful_shutdown": GRACE_SECONDS,
        "server_header": False,
    }


def _servers(host: Host) -> dict[str, Any]:
    servers = {status.name: status.state for status in host.fleet.status()}
    return {"version": version("pegboard"), "servers": servers}


class _Server(uvicorn.Server):
    """Says when it listens, and ends its streams before it waits for what is under way."""

    def __init__(self, config: uvicorn.Config, door: HttpDoor, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._door = door
        self._said = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._said()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._door.hang_up()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ours are handled outside, so that the servers behind are ended before the process is."""
        yield


@contextmanager
def _signals(server: uvicorn.Server) -> Iterator[None]:
    """The first signal asks to finish, a second one does not wait."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    handled = [signal.SIGINT, signal.SIGTERM]
    for each in handled:
        with suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(each, end)
    try:
        yield
    finally:
        for each in handled:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(each)
