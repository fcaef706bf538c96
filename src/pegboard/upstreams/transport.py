"""Opens the transport to a server: standard streams of a command, or HTTP with SSE."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import BinaryIO, TextIO

import anyio
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.stdio import StdioServerParameters, stdio_client

from pegboard import operating_system
from pegboard.errors import UpstreamError
from pegboard.home_path import home_path
from pegboard.settings.server_spec import ServerSpec
from pegboard.terminal import printable
from pegboard.upstreams.http_transport import event_stream
from pegboard.upstreams.limits import UpstreamLimits
from pegboard.upstreams.pipes import piped
from pegboard.upstreams.sandbox import container_environment, sandboxed

TAIL_LINES = 5
LINE_CHARACTERS = 4000
LAST_LINES = 0.5
"""Seconds for what a server wrote before it ended, where a thread reads it."""


class StderrTail:
    """Drains a server's stderr so that it never blocks, and keeps the last lines, which say why it failed."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def feed(self, line: bytes) -> None:
        text = printable(line.decode("utf-8", "replace")).strip()
        if text:
            self._lines = [*self._lines[1 - TAIL_LINES :], text[:LINE_CHARACTERS]]

    @property
    def text(self) -> str:
        return " | ".join(self._lines)


def open_transport(
    spec: ServerSpec,
    environment: Mapping[str, str],
    stderr: StderrTail,
    limits: UpstreamLimits,
    auth: httpx2.Auth | None = None,
) -> AbstractAsyncContextManager[TransportStreams]:
    """The streams of a command, or of a server on HTTP with SSE, whose spec has its variables expanded. Raises
    UpstreamError for a missing command.

    An answer that exceeds ``limits`` is an error of its request. ``auth`` adds a token to HTTP requests.
    """
    if spec.url is not None:
        return event_stream(spec.url, spec.headers, limits=limits, credentials=spec.has_credentials, auth=auth)
    return _stdio(spec, environment, stderr, limits)


@asynccontextmanager
async def _stdio(
    spec: ServerSpec, environment: Mapping[str, str], stderr: StderrTail, limits: UpstreamLimits
) -> AsyncIterator[TransportStreams]:
    in_container = spec.sandbox is not None and spec.sandbox.kind == "docker"
    env = container_environment(spec, environment) if in_container else spec.handed(environment)
    argv, cwd = await asyncio.to_thread(_command, spec, env)  # it checks files, which may be on a network
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as errlog:
        drain = await _drain(reading, stderr)
        try:
            async with _process(argv, env, cwd, errlog, limits) as streams:
                yield streams
        finally:
            errlog.close()
            await _end(drain)


def _process(
    argv: list[str], env: dict[str, str], cwd: Path | None, errlog: TextIO, limits: UpstreamLimits
) -> AbstractAsyncContextManager[TransportStreams]:
    """Start the process under the reaper; on Windows the SDK's job object does its work."""
    if operating_system.is_windows():
        command = StdioServerParameters(
            command=argv[0], args=argv[1:], env=env, cwd=cwd, encoding_error_handler="replace"
        )
        return stdio_client(command, errlog=errlog)
    reaper = str(files("pegboard.upstreams") / "reaper.py")
    argv = [sys.executable, "-I", "-S", reaper, str(os.getpid()), *argv]
    return piped(argv, env=env, cwd=cwd, stderr=errlog, limits=limits)


def _command(spec: ServerSpec, env: Mapping[str, str]) -> tuple[list[str], Path | None]:
    """The command line, and the folder in which to start it. Raises UpstreamError for what is not there."""
    cwd = _folder(spec)
    if spec.sandbox is None or spec.sandbox.kind == "none":
        return [_executable(spec, env), *spec.args], cwd
    inside = spec.command or "" if spec.sandbox.kind == "docker" else _executable(spec, env)
    return sandboxed([inside, *spec.args], spec, env, cwd), None


def _executable(spec: ServerSpec, env: Mapping[str, str]) -> str:
    command = spec.command or ""
    if operating_system.names_a_path(command):
        command = str(Path(_folder(spec) or spec.folder, home_path(command, f"Server {spec.name!r}")))
    found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        raise UpstreamError(
            spec.name,
            f"The command {spec.command!r} was not found.",
            remedy="Install it, or give its full path in the configuration.",
        )
    return found


def _folder(spec: ServerSpec) -> Path | None:
    if spec.cwd is None:
        return None
    folder = Path(spec.folder, home_path(spec.cwd, f"Server {spec.name!r}"))
    if not folder.is_dir():
        raise UpstreamError(
            spec.name, f"Its cwd {spec.cwd!r} is not a folder.", remedy="Correct it, or create the folder."
        )
    return folder


async def _drain(descriptor: int, tail: StderrTail) -> asyncio.ReadTransport | _DrainThread:
    pipe = os.fdopen(descriptor, "rb", 0)
    if not operating_system.loop_reads(descriptor):
        return _DrainThread(pipe, tail)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: _Lines(tail), pipe)
    return transport


async def _end(drain: asyncio.ReadTransport | _DrainThread) -> None:
    """The server has ended, and this process has closed its own end of the pipe."""
    if isinstance(drain, _DrainThread):
        with anyio.CancelScope(shield=True):
            await asyncio.to_thread(drain.join)
    else:
        drain.close()


class _DrainThread:
    """Reads a pipe that the event loop cannot wait for, until its last writer is gone."""

    def __init__(self, pipe: BinaryIO, tail: StderrTail) -> None:
        self._thread = threading.Thread(target=self._read, args=(pipe, tail), daemon=True, name="pegboard-stderr")
        self._thread.start()

    def _read(self, pipe: BinaryIO, tail: StderrTail) -> None:
        lines = _Lines(tail)
        with pipe:
            while piece := pipe.read(LINE_CHARACTERS):
                lines.data_received(piece)
        lines.connection_lost(None)

    def join(self) -> None:
        """Wait for the last lines, unless the server left processes behind that can still write some."""
        self._thread.join(LAST_LINES)


class _Lines(asyncio.Protocol):
    def __init__(self, tail: StderrTail) -> None:
        self._tail = tail
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest[-LINE_CHARACTERS:]
        for line in lines:
            self._tail.feed(line)

    def connection_lost(self, _error: Exception | None) -> None:
        self._tail.feed(self._rest)
        self._rest = b""
