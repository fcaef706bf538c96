"""What differs between Linux, macOS and Windows; nothing else in the package asks which system this is.

Only programs that do not import pegboard ask for themselves: `upstreams.reaper`, `routing.schema_worker` and
`programs.sandbox_worker`.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

WINDOWS, MACOS, LINUX = "win32", "darwin", "linux"
PLATFORM = sys.platform
"""The system of this process, as `sys.platform`; tests replace it."""
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
"""The flag of `os.open` that refuses a symbolic link; Windows has none."""
REPLACE_SECONDS = 2.0
"""How long `replace_file` tries on Windows: virus scanners and indexers open a new file for a moment."""
RETRY_SECONDS = 0.02
CANNOT_ALLOCATE = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""What `os.posix_fallocate` says where the file system, the C library or the kernel has nothing of the kind."""
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
SERVICE_MANAGERS = {MACOS: "launchd", WINDOWS: "task"}
DETACHED = 0x00000008
"""`subprocess.DETACHED_PROCESS`: no console of the one who started it."""
NEW_GROUP = 0x00000200
"""`subprocess.CREATE_NEW_PROCESS_GROUP`."""
BELOW_NORMAL = 0x00004000
"""`subprocess.BELOW_NORMAL_PRIORITY_CLASS`."""
MOST_NICE = 19
LOW_PRIORITY, BEHIND_REQUESTS = 10, 5
"""Nicenesses of POSIX: on Linux a tenth, and a third, of the weight of others."""
ON_POSIX = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
ON_WINDOWS = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)


def is_windows() -> bool:
    return PLATFORM == WINDOWS


def is_linux() -> bool:
    return PLATFORM == LINUX


def apart_from_signals() -> dict[str, Any]:
    """Options of `subprocess.Popen` for a process that an interrupt of the terminal does not reach.

    It stays in this process's session: Linux divides the processor among sessions first, and a niceness counts only
    within one (sched(7), "The autogroup feature").
    """
    return {"creationflags": NEW_GROUP} if is_windows() else {"process_group": 0}


def group_of_its_own() -> dict[str, Any]:
    """Options of `subprocess.Popen` for a process that is killed with its children, and that may get a low priority."""
    return {"creationflags": NEW_GROUP | BELOW_NORMAL} if is_windows() else {"process_group": 0}


def lower_priority(pid: int, by: int) -> None:
    """Give a process just started, and what it will start, a lower priority than ours. Windows does so at its start."""
    if not is_windows():
        with suppress(ProcessLookupError, PermissionError):
            os.setpriority(os.PRIO_PROCESS, pid, min(MOST_NICE, os.getpriority(os.PRIO_PROCESS, 0) + by))


def yield_to_others(niceness: int = LOW_PRIORITY) -> None:
    """Give this process a low priority: it gets the processor time that nothing else wants, and a tenth of what others
    get where there is not enough; with `BEHIND_REQUESTS` a third."""
    if is_windows():
        kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined, unused-ignore]
        kernel.SetPriorityClass(kernel.GetCurrentProcess(), BELOW_NORMAL)
    else:
        os.nice(niceness)


def yield_wholly() -> None:
    """Give this thread only the processor time that nothing else wants. On Linux others that wake up then take its core
    at once (SCHED_IDLE, sched(7)); elsewhere its priority stays."""
    if is_linux():
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


# Paths and files


def application_data(home: Path, platform: str = "") -> Path:
    """The folder in which programs keep a user's settings, on this or another ``platform``."""
    platform = platform or PLATFORM
    if platform == MACOS:
        return home / "Library" / "Application Support"
    if platform == WINDOWS:
        return Path(os.environ.get("APPDATA", home / "AppData" / "Roaming"))
    return Path(os.environ.get("XDG_CONFIG_HOME", home / ".config"))


def names_a_path(command: str) -> bool:
    """Whether a command is a path, not a name to look up in PATH."""
    return "/" in command or (is_windows() and ("\\" in command or command[1:2] == ":"))


def replace_file(draft: Path, target: Path) -> None:
    """Put a finished file in the place of another, atomically. Raises OSError.

    Windows refuses while another program has the target open, which is tried again for `REPLACE_SECONDS`.
    """
    until = time.monotonic() + REPLACE_SECONDS
    while True:
        try:
            draft.replace(target)
        except PermissionError:
            if not is_windows() or time.monotonic() > until:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return


def extend_file(descriptor: int, size: int) -> None:
    """Give a file this size, and room on the disk where the system can. On a disk that is full this is an OSError;
    without room, writing to memory mapped to the file would kill the process."""
    before = os.fstat(descriptor).st_size
    if hasattr(os, "posix_fallocate") and size > before:
        try:
            os.posix_fallocate(descriptor, before, size - before)
        except OSError as error:
            os.ftruncate(descriptor, before)  # some file systems keep what they found, and stay full
            if error.errno not in CANNOT_ALLOCATE:
                raise
    os.ftruncate(descriptor, size)


def mode_in_place_of(path: Path) -> int:
    """The mode of a file, or that which a new one would get: that of a draft which replaces it. Not for
    several threads."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def publish_file(draft: Path, target: Path) -> None:
    """Let a finished file appear under a name that must be free. Raises FileExistsError. The draft may stay."""
    if is_windows():
        draft.rename(target)  # fails if it exists; on POSIX it would replace
    else:
        os.link(draft, target)


def only_we_write(path: Path) -> bool:
    """Whether only this user can have written a file or folder. On Windows the user's profile folder sees to that."""
    if is_windows():
        return path.exists()
    try:
        about = path.lstat()
    except OSError:
        return False
    return about.st_uid == os.getuid() and not stat.S_ISLNK(about.st_mode) and not about.st_mode & OTHERS_WRITE


# Users, variables, limits


def user_id() -> int:
    """The number of this process's user; 0 where users have none."""
    return 0 if is_windows() else os.getuid()


def user_and_group() -> str:
    """``UID:GID`` as `docker run --user` takes it; empty where users have no numbers."""
    return "" if is_windows() else f"{os.getuid()}:{os.getgid()}"


def inherited_variables() -> tuple[str, ...]:
    """Variables that a server's process inherits: `mcp.client.stdio.DEFAULT_INHERITED_ENV_VARS`."""
    return ON_WINDOWS if is_windows() else ON_POSIX


def most_descriptors() -> int | None:
    """Files and sockets that this process may have open; None without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if allowed == resource.RLIM_INFINITY else allowed


def give_back_memory() -> None:
    """Return freed memory to the system: glibc would keep tens of megabytes after embedding."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if is_linux() else None
    if trim is not None:
        trim(0)


# Processes


def is_alive(pid: int) -> bool:
    """Whether a process may exist. Windows cannot tell without a right to it: signal 0 would end it there."""
    if is_windows():
        return pid > 0
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def runs_as_us(pid: int) -> bool:
    """Whether a process of this user may run; a child of this process that ended is reaped. Windows cannot tell."""
    if is_windows() or pid <= 0:
        return pid > 0
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] != pid
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def end_process(pid: int) -> None:
    """Ask a process to end; Windows ends it at once. Raises OSError for one that does not exist."""
    os.kill(pid, signal.SIGTERM)


def kill_group(leader: int) -> None:
    """Kill every process of a group. Windows has none: there the SDK's job object ends a server's processes."""
    if not is_windows():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)


def kill_of_group(pid: int, leader: int) -> None:
    """Kill a process if it still is one of this group, so that its number cannot be another's by now."""
    if not is_windows() and pid > 0:
        with suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == leader:
                os.kill(pid, signal.SIGKILL)


def was_killed(returncode: int | None) -> bool:
    """Whether a process of this exit status runs still or was killed, so that its children may be left."""
    return returncode is None or returncode == -getattr(signal, "SIGKILL", 9)


def ran_out_of_time(returncode: int | None) -> bool:
    """Whether a process of this exit status was ended because it took more of the processor than it may."""
    return returncode is not None and returncode == -getattr(signal, "SIGXCPU", 24)


def start_detached(command: Sequence[str], log: Path) -> int:
    """Start a process that goes on without this one, in a session of its own. Returns its number. Raises OSError."""
    if is_windows():
        with log.open("wb") as out:
            null = subprocess.DEVNULL
            flags = NEW_GROUP | DETACHED
            return subprocess.Popen(command, stdin=null, stdout=out, stderr=out, creationflags=flags).pid
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return os.posix_spawnp(command[0], list(command), os.environ, file_actions=files, setsid=True)


def service_manager() -> str | None:
    """What runs services of a user's session here; None where it has to be found out: on Linux."""
    return SERVICE_MANAGERS.get(PLATFORM)


def after_fork(forget: Callable[[], None]) -> None:
    """Call ``forget`` in every forked child; Windows forks none."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)


def never_finalize(theirs: object) -> None:
    """Never finalize this in a forked child: closing the copy of a connection would end the parent's server or its
    transaction."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(theirs))


# Signals and streams


def reload_signal() -> int | None:
    """SIGHUP, which asks a server to read its configuration again; Windows has none."""
    return None if is_windows() else signal.SIGHUP


@contextmanager
def signal_handlers(handlers: Mapping[int, Callable[[], Any]]) -> Iterator[None]:
    """Calls a handler in the running event loop for each signal, until the block ends.

    The event loop of Windows takes none: there a handler of the process wakes the loop.
    """
    loop = asyncio.get_running_loop()
    before = {}
    for number, handler in handlers.items():
        if is_windows():
            before[number] = signal.signal(number, _wakes(loop, handler))
        else:
            loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            if number in before:
                signal.signal(number, before[number])
            else:
                loop.remove_signal_handler(number)


def _wakes(loop: asyncio.AbstractEventLoop, handler: Callable[[], Any]) -> Callable[[int, Any], None]:
    def wake(_number: int, _frame: Any) -> None:
        loop.call_soon_threadsafe(handler)

    return wake


def loop_reads(*descriptors: int) -> bool:
    """Whether the event loop can wait for these: pipes and sockets, and on Windows not for those of other programs."""
    return not is_windows() and all(map(_is_pipe, descriptors))


def private_copy(descriptor: int, least: int) -> int:
    """A copy of a descriptor, numbered ``least`` or more, that no process started from here inherits. POSIX."""
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, least)


def _is_pipe(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
