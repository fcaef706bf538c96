"""Runs one server's command and ensures that no process of it outlives the gateway (M13).

A separate program, started as ``python -I -S reaper.py PARENT_PID COMMAND ARG…``. It uses only the standard library and
does not import pegboard, because one starts with every server. It passes its standard streams to the command and waits.
When the command ends or the gateway dies for any reason (SIGKILL too), it ends every descendant, including those that
left the process group, and then itself. On Linux it is a "subreaper", so orphaned descendants become its children; on
other POSIX systems it reaches the process group.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.2
GRACE_SECONDS = 1.0
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
NOT_FOUND = 127
NOT_EXECUTABLE = 126


def main(parent: int, command: list[str]) -> int:
    for number in SIGNALS:
        signal.signal(number, _raise_stopped)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    try:
        child = subprocess.Popen(command, preexec_fn=_die_with_reaper if sys.platform == "linux" else None)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
    try:
        _release_streams()
        return _wait(child.pid, parent)
    except _Stopped:
        return -signal.SIGTERM
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _end_descendants()


class _Stopped(Exception):  # noqa: N818
    """A signal requested the stop, or the gateway is gone."""


def _raise_stopped(_number: int, _frame: object) -> None:
    raise _Stopped


def _wait(child: int, parent: int) -> int:
    """The child's exit code. Reaps adopted orphans meanwhile."""
    signalled = sys.platform == "linux"
    while True:
        if os.getppid() != parent:
            raise _Stopped
        pid, status = os.waitpid(-1, 0 if signalled else os.WNOHANG)
        if pid == child:
            return os.waitstatus_to_exitcode(status)
        if pid == 0:
            time.sleep(POLL_SECONDS)


def _release_streams() -> None:
    """Close our copies of the pipes, so that the gateway reads end of file when the server dies."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def _end_descendants() -> None:
    """SIGTERM, a second of grace, then SIGKILL until no descendant is left."""
    deadline = time.monotonic() + GRACE_SECONDS
    _signal_all(signal.SIGTERM)
    while _alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    for _ in range(100):
        if not _alive():
            return
        _signal_all(signal.SIGKILL)
        time.sleep(0.01)


def _signal_all(number: signal.Signals) -> None:
    for pid in _descendants():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    if sys.platform != "linux" and number == signal.SIGTERM:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(os.getpgrp(), number)


def _alive() -> bool:
    """Whether a descendant is left, after reaping those that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return bool(_descendants())


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        of_one = children.get(waiting.pop(), [])
        found += of_one
        waiting += of_one
    return found


def _processes() -> list[tuple[int, int]]:
    """(pid, parent's pid) of every process; empty without /proc."""
    found: list[tuple[int, int]] = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            found.append((int(stat.parent.name), int(fields[1])))
    return found


def _die_with_reaper() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
