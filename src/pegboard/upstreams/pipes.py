"""A server's process, spoken to over its standard streams.

The SDK's own transport keeps a line of any length and reads it in time that grows with its square: a server could take
all memory, and a 100 MB line all of the processor. On Windows, where ending a tree of processes is another matter, that
one is used all the same.
"""

from __future__ import annotations

import os
import signal
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

from pegboard.upstreams.limits import LIST_METHOD, Limits, ListRequests
from pegboard.upstreams.lines import Lines, TooLong
from pegboard.upstreams.substitutes import Unattributable, misshapen, too_large

CHUNK_BYTES = 262_144
FLUSH_SECONDS = 0.5
"""For messages under way to be written before standard input is closed."""
EXIT_SECONDS = 2.0
"""For a server to end by itself once its standard input is closed (MCP 2025-11-25, lifecycle)."""
REAP_SECONDS = 4.0
"""For the reaper to end everything once it is told to."""
POLL_SECONDS = 0.01
WATCH_SECONDS = 0.5

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]
GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@asynccontextmanager
async def piped(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, stderr: TextIO, limits: Limits
) -> AsyncIterator[TransportStreams]:
    """The streams of a process that is started now and has ended, with all of its group, on leaving.

    A message beyond ``limits`` becomes an error for whom it answers. One line is read at a time, and no
    further until it is taken. Raises OSError for a command that cannot be run.
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


async def _read(stdout: ByteReceiveStream, incoming: Incoming, limits: Limits, lists: ListRequests) -> None:
    lines = Lines(limits.result)
    with suppress(*GONE):
        async with incoming:
            while True:
                for line in lines.feed(await stdout.receive(CHUNK_BYTES)):
                    message = _message(line, limits, lists)
                    await incoming.send(message)
                    if isinstance(message, Unattributable):
                        return
    with suppress(*GONE):  # a server that cannot write does not end
        while True:
            await stdout.receive(CHUNK_BYTES)


def _message(line: bytes | TooLong, limits: Limits, lists: ListRequests) -> SessionMessage | Exception:
    if isinstance(line, TooLong):
        return too_large(line, limits.result)
    whose = lists.answered(line, limits)
    if whose is not None:
        return too_large(TooLong(len(line), whose), limits.of(LIST_METHOD), "list_bytes")
    try:
        text = line.decode("utf-8", "replace")
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return misshapen(line, error)


async def _write(
    stdin: ByteSendStream, outgoing: Outgoing, incoming: Incoming, written: anyio.Event, lists: ListRequests
) -> None:
    """A server that reads no more is one that has ended, although it may run."""
    try:
        async with outgoing:
            async for each in outgoing:
                lists.sent(each)
                text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode("utf-8", "replace") + b"\n")
    except GONE:
        await incoming.aclose()
    finally:
        written.set()


async def _watch(process: Process, incoming: Incoming) -> None:
    """A reaper that was killed may leave processes that hold its server's pipes open: nothing is read of its end."""
    while process.returncode is None:  # noqa: ASYNC110
        await anyio.sleep(WATCH_SECONDS)
    _kill_what_is_left(process)
    await anyio.sleep(WATCH_SECONDS)
    await incoming.aclose()


async def _end(process: Process) -> None:
    """Its input is closed; then the reaper is told; then, as if there were none, the group is killed."""
    await _closed(process.stdin)
    if not await _ended(process, EXIT_SECONDS):
        with suppress(ProcessLookupError):
            process.terminate()
        await _ended(process, REAP_SECONDS)
    _kill_what_is_left(process)
    await _ended(process, EXIT_SECONDS)
    await _closed(process.stdout)
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:  # open for as long as a descendant that got away holds an end of a pipe
        transport.close()


def _kill_what_is_left(process: Process) -> None:
    """Of the group of a reaper that does not end, or was killed itself."""
    if process.returncode in (None, -signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


async def _closed(stream: ByteReceiveStream | ByteSendStream | None) -> None:
    if stream is not None:
        with suppress(*GONE):
            await stream.aclose()


async def _ended(process: Process, seconds: float) -> bool:
    """Whether it ended in time. `Process.wait` would wait for whoever inherited its pipes, too."""
    with anyio.move_on_after(seconds):
        while process.returncode is None:  # noqa: ASYNC110
            await anyio.sleep(POLL_SECONDS)
    return process.returncode is not None
