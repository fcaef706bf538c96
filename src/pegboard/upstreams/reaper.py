"""Runs one server's command and ensures that no process of it outlives the gateway (M13).

A separate program, started as ``python -I -S reaper.py PARENT_PID COMMAND ARG…``. One starts with every server and
stays in memory beside it: it does not import pegboard, and of the standard library only `signal` and `ctypes`, as
`subprocess` and `pathlib` would be a third of its memory. It passes its standard streams to the command and waits.
When the command ends or the gateway dies for any reason (SIGKILL too), it ends every descendant, including those that
left the process group, and then itself. On Linux it is a "subreaper", so orphaned descendants become its children; on
other POSIX systems it reaches the process group.
"""

from __future__ import annotations

import os
import signal
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
        child = os.fork()
        if child == 0:
            _become(command)
        _release_streams()
        return _wait(child, parent)
    except _Stopped:
        return -signal.SIGTERM
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _end_descendants()


def _become(command: list[str]) -> None:
    """Run the command in this process, which dies with the reaper. Does not return."""
    status = NOT_EXECUTABLE
    try:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by the interpreter, and inherited
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        status = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        os.write(2, f"{command[0]}: {error.strerror}\n".encode("utf-8", "replace"))
    finally:
        os._exit(status)


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
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
    if sys.platform != "linux" and number == signal.SIGTERM:
        try:
            os.killpg(os.getpgrp(), number)
        except (ProcessLookupError, PermissionError):
            return


def _alive() -> bool:
    """Whether a descendant is left, after reaping those that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:  # there is none
        return False
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
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            found.append((int(name), int(fields[1])))
    return found


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
        except (ImportError, OSError, AttributeError):
            return


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
