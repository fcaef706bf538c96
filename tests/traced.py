"""What a program does to the outside, as strace sees it: the files that it writes, and the names that it looks up."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CALLS = "connect,sendto,sendmsg,sendmmsg,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,symlink,link,linkat"
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|\b(creat|mkdir|mkdirat|rename|renameat|renameat2|symlink|link|linkat)\(")
QUOTED = re.compile(r'(?:AT_FDCWD|\d+)(?:<(?P<folder>[^>]*)>)?, "(?P<path>[^"]*)"|\("(?P<only>[^"]*)"')
RESOLVER = ("/etc/resolv.conf", "/etc/hosts", "/etc/gai.conf")
"""What the C library reads when a name is looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    output: str
    written: frozenset[Path]
    """Files and folders that were made or opened for writing."""
    network: tuple[str, ...]
    """Calls that go to the network, or look up a name."""

    def written_outside(self, *folders: Path) -> set[Path]:
        inside = (*folders, Path("/dev"), Path("/proc"))
        return {path for path in self.written if not any(path.is_relative_to(folder) for folder in inside)}


def traced(command: Sequence[str], log: Path, *, env: dict[str, str], cwd: Path) -> Trace:
    """The program and all its children, run to their end."""
    watch = ["strace", "-f", "-qq", "-y", "-s", "4096", "-e", f"trace={CALLS}", "-o", str(log)]
    done = subprocess.run([*watch, *command], capture_output=True, text=True, env=env, cwd=cwd)
    assert done.returncode == 0, done.stderr
    calls = log.read_text("utf-8", "replace").splitlines()
    return Trace(
        output=done.stdout,
        written=frozenset(_path(call, cwd) for call in calls if WRITES.search(call) and "= -1 " not in call),
        network=tuple(call for call in calls if _asks_the_network(call)),
    )


def _asks_the_network(call: str) -> bool:
    return "sa_family=AF_INET" in call or any(f'"{path}"' in call for path in RESOLVER)


def _path(call: str, cwd: Path) -> Path:
    found = QUOTED.search(call)
    assert found is not None, call
    return Path(found["folder"] or cwd, found["path"] or found["only"])
