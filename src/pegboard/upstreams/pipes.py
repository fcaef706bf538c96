"""The stdio transport: a server's process and its standard streams.

The SDK's transport keeps lines of any length and reads them in quadratic time: a server could exhaust memory, and a
100 MB line the processor. On Windows, where process trees end differently, the SDK's transport is used nevertheless.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TextIO

import anyio
import mcp_types as types
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from pegboard import operating_system
from pegboard.lone_surrogates import readable
from pegboard.upstreams.limits import LIST_METHOD, UpstreamLimits
from pegboard.upstreams.line_reader import LineReader, TooLong, Unattributable, list_too_large, malformed, too_large
from pegboard.upstreams.list_answers import ListRequests, ListTooLarge, cut
from pegboard.upstreams.message_streams import EncodedMessage, encoded

CHUNK_BYTES = 262_144
FLUSH_SECONDS = 0.5
"""Time to write queued messages before standard input is closed."""
EXIT_SECONDS = 2.0
"""Time for a server to exit after its standard input is closed (MCP 2025-11-25, lifecycle)."""
REAP_SECONDS = 4.0
"""Time for the reaper to end everything once it is terminated."""
POLL_SECONDS = 0.01
WATCH_SECONDS = 0.5

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]
GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def piped(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, stderr: TextIO, limits: UpstreamLimits
) -> AsyncIterator[TransportStreams]:
    """The streams of a process. It starts now; on leaving, the whole process group has ended.

    A message that exceeds ``limits`` becomes an error of its request. The next line is read only after the current one
    was consumed. Raises OSError if the command cannot be run.
    """
    process = await anyio.open_process(list(argv), env=env, cwd=cwd, stderr=stderr, start_new_session=True)
    incoming, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    written = anyio.Event()
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process that was opened with pipes has none")
    async with anyio.create_task_group() as tasks:
        lists = ListRequests()
        tasks.start_soon(_read, process.stdout, incoming, limits, lists)
        tasks.start_soon(_write, process.stdin, outgoing, incoming, written, lists)
        tasks.start_soon(_watch, process, incoming)
        try:
            yield read, write
        finally:
            with anyio.CancelScope(shield=True):
                read.close()
                write.close()
                with anyio.move_on_after(FLUSH_SECONDS):
                    await written.wait()
                await _end(process)
            tasks.cancel_scope.cancel()


async def _read(stdout: ByteReceiveStream, incoming: Incoming, limits: UpstreamLimits, lists: ListRequests) -> None:
    lines = LineReader(limits.result)
    with suppress(*GONE):
        async with incoming:
            while True:
                for line in lines.feed(await stdout.receive(CHUNK_BYTES)):
                    message = _message(line, limits, lists)
                    await incoming.send(message)
                    if isinstance(message, Unattributable):
                        return
    with suppress(*GONE):  # drain: a server that cannot write does not exit
        while True:
            await stdout.receive(CHUNK_BYTES)


def _message(line: bytes | TooLong, limits: UpstreamLimits, lists: ListRequests) -> SessionMessage | Exception:
    if isinstance(line, TooLong):
        return too_large(line, limits.result)
    whose = lists.answered(line) if lists.open else None
    if whose is not None and len(line) > limits.of(LIST_METHOD):
        return too_large(TooLong(len(line), whose), limits.of(LIST_METHOD), "list_bytes")
    try:
        return _parsed(line, whose, limits)
    except ListTooLarge as reason:
        return list_too_large(whose, reason)
    except ValueError as error:
        return malformed(line, error)


def _parsed(line: bytes, whose: int | str | None, limits: UpstreamLimits) -> SessionMessage:
    """The message, with lone surrogates replaced, if it has some. Raises ListTooLarge and ValueError."""
    try:
        text = (line if whose is None else cut(line, limits)).decode("utf-8", "replace")
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError:
        if (mended := readable(line)) == line:
            raise
        return _parsed(mended, whose, limits)


async def _write(
    stdin: ByteSendStream, outgoing: Outgoing, incoming: Incoming, written: anyio.Event, lists: ListRequests
) -> None:
    """A server that no longer reads counts as ended, although its process may run."""
    try:
        async with outgoing:
            async for each in outgoing:
                if getattr(each.message, "method", "").endswith(LIST_METHOD):
                    lists.sent(each)
                text = each.text if isinstance(each, EncodedMessage) else encoded(each.message)
                await stdin.send(text.encode("utf-8", "replace") + b"\n")
    except GONE:
        await incoming.aclose()
    finally:
        written.set()


async def _watch(process: Process, incoming: Incoming) -> None:
    """Detect the end of a killed reaper: processes it leaves behind may hold the pipes open, so no end of file
    comes."""
    while process.returncode is None:  # noqa: ASYNC110
        await anyio.sleep(WATCH_SECONDS)
    _kill_what_is_left(process)
    await anyio.sleep(WATCH_SECONDS)
    await incoming.aclose()


async def _end(process: Process) -> None:
    """Close its input, then terminate the reaper, then kill the process group."""
    await _closed(process.stdin)
    if not await _ended(process, EXIT_SECONDS):
        with suppress(ProcessLookupError):
            process.terminate()
        await _ended(process, REAP_SECONDS)
    _kill_what_is_left(process)
    await _ended(process, EXIT_SECONDS)
    await _closed(process.stdout)
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:  # stays open while an escaped descendant holds an end of a pipe
        transport.close()


def _kill_what_is_left(process: Process) -> None:
    """Kill the process group of a reaper that does not exit or was killed itself."""
    if operating_system.was_killed(process.returncode):
        operating_system.kill_group(process.pid)


async def _closed(stream: ByteReceiveStream | ByteSendStream | None) -> None:
    if stream is not None:
        with suppress(*GONE):
            await stream.aclose()


async def _ended(process: Process, seconds: float) -> bool:
    """Whether the process exited in time. `Process.wait` would also wait for processes that inherited its pipes."""
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110
            await anyio.sleep(POLL_SECONDS)
    return process.returncode is not None
