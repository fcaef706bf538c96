"""Starting and looking at processes, for tests that no server outlives the gateway."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pegboard_bench.ports import free_port


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        of_one = children.get(waiting.pop(), [])
        found += of_one
        waiting += of_one
    return found


def eventually(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Poll until the condition holds; what is waited for happens in another process, which tells nobody."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


async def until(condition: Callable[[], bool], seconds: float = 150.0) -> None:
    """As `eventually`, for tests on an event loop; raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.01)


@contextmanager
def listening(program: str, *arguments: str) -> Iterator[str]:
    """The URL of a Python program that serves HTTP on the port that is its first argument."""
    port = free_port()
    process = subprocess.Popen([sys.executable, program, str(port), *arguments])
    try:
        assert eventually(lambda: process.poll() is not None or _listens(port))
        assert process.poll() is None, f"{program} ended"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
