"""The processes that a command has started, from /proc."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PROC = Path("/proc")


def descendants(process: int) -> list[int]:
    """Children of a process, and theirs."""
    children: dict[int, list[int]] = {}
    for stat in PROC.glob("[0-9]*/stat"):
        if fields := _fields(stat):
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, waiting = [], [process]
    while waiting:
        of_one = children.get(waiting.pop(), [])
        found += of_one
        waiting += of_one
    return found


def command(process: int) -> str:
    """Its words, or what it calls itself; empty if it has ended."""
    try:
        return (PROC / str(process) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def alive(process: int) -> bool:
    """Whether it runs; one that has ended and is not waited for does not."""
    fields = _fields(PROC / str(process) / "stat")
    return bool(fields) and fields[0] != "Z"


def kill(processes: Iterable[int]) -> None:
    for process in processes:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def ended(processes: Iterable[int], seconds: float) -> list[int]:
    """Wait until these have ended; those that then still run."""
    waiting, deadline = list(processes), time.monotonic() + seconds
    while (waiting := [each for each in waiting if alive(each)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return waiting


def _fields(stat: Path) -> list[str]:
    """The fields after the name: state, parent, …"""
    try:
        return stat.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
