"""Relays a client on stdio to a `pegboard serve`; messages pass unchanged, in both eras."""

from __future__ import annotations

import signal
from urllib.parse import urlsplit

import anyio
import anyio.abc
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED

from pegboard.errors import PegboardError
from pegboard.gateways.mcp.attach.reconnect import reconnecting_client
from pegboard.gateways.mcp.attach.relay import MessageReceiver, MessageSender, Relay, error_message
from pegboard.gateways.mcp.transport.standard_streams import standard_streams

RETURN_SECONDS = 10.0
"""Seconds for which a serve may be away before the bridge gives up: a restart takes less."""
RETRY_SECONDS = 0.2
FAREWELL_SECONDS = 1.0
"""Seconds that a client that has closed its input waits for pending answers."""


async def bridge_stdio(url: str, *, patience: float = RETURN_SECONDS) -> None:
    """Relay until the client disconnects. Raises PegboardError if the serve is away for ``patience`` seconds.

    Every request gets an answer: pending ones are answered with an error first. An interrupt ends the process at once,
    as it does without a serve.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with standard_streams() as (reading, writing):
        gone = await bridge(reading, writing, url, patience)
        await writing.aclose()
    if gone:
        raise gone


async def bridge(reading: MessageReceiver, writing: MessageSender, url: str, patience: float) -> PegboardError | None:
    """Relay between a client's streams and the endpoint ``url``. Returns None if the client left, else the error."""
    relay = Relay()
    gone: list[PegboardError] = []

    async def outward() -> None:
        while (item := await _next(reading)) is not None:
            try:
                answer = await relay.outward(item, to_serve)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return give_up()
            if answer:
                await writing.send(answer)
        with anyio.move_on_after(FAREWELL_SECONDS):
            await relay.settled()
        tasks.cancel_scope.cancel()
        return None

    async def inward() -> None:
        while (item := await _next(from_serve)) is not None:
            if isinstance(item, SessionMessage):
                relay.inward(item.message)
                await writing.send(SessionMessage(item.message))
                relay.answered(item.message)
        give_up()

    async def watch() -> None:
        await _until_gone(url, patience)
        give_up()

    def give_up() -> None:
        gone.append(_gone(url))
        tasks.cancel_scope.cancel()

    async with (
        reconnecting_client(RETRY_SECONDS) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=None) as (from_serve, to_serve),
        anyio.create_task_group() as tasks,
    ):
        for each in (outward, inward, watch):
            tasks.start_soon(each)
    if gone:
        for request in list(relay.pending):
            await writing.send(error_message(request, CONNECTION_CLOSED, str(gone[0])))
        return gone[0]
    return None


async def _next(stream: MessageReceiver) -> SessionMessage | Exception | None:
    """The next message, or None at the end."""
    try:
        return await stream.receive()
    except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return None


async def _until_gone(url: str, patience: float) -> None:
    """Returns when nothing has answered there for ``patience`` seconds. An open connection reveals the end at once."""
    where = urlsplit(url)
    with anyio.move_on_after(patience) as away:
        while True:
            try:
                async with await anyio.connect_tcp(where.hostname or "", where.port or 80) as connection:
                    away.deadline = float("inf")
                    await _ended(connection)
            except OSError:
                pass
            away.deadline = min(away.deadline, anyio.current_time() + patience)
            await anyio.sleep(RETRY_SECONDS)


async def _ended(connection: anyio.abc.ByteStream) -> None:
    try:
        while True:
            await connection.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return


def _gone(url: str) -> PegboardError:
    where = urlsplit(url)
    return PegboardError(
        f"`pegboard serve` at {where.hostname}:{where.port} has ended.",
        remedy="Start it again, or use --no-attach for this client; then reconnect the client.",
    )
