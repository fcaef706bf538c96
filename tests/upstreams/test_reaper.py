"""The program that watches a server: whatever way the gateway dies, nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from processes import alive, descendants, eventually

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.requirement("M13"),
]

REAPER = str(files("pegboard.upstreams") / "reaper.py")
FAMILY = "sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & wait' &) ; wait"
"""A shell with a child in its group, one in a session of its own, and an orphan with a child."""
GATEWAY = f"""
import os, subprocess, sys, time
command = [sys.executable, "-I", "-S", {REAPER!r}, str(os.getpid()), "sh", "-c", {FAMILY!r}]
subprocess.Popen(command, start_new_session=True)
time.sleep(300)
"""


@pytest.fixture
def gateway() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", GATEWAY])
    assert eventually(lambda: len(descendants(process.pid)) >= 6)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_every_descendant_ends_when_the_gateway_is_killed(gateway: subprocess.Popen[bytes], number: int) -> None:
    family = descendants(gateway.pid)
    gateway.send_signal(number)
    assert eventually(lambda: not any(map(alive, family))), [pid for pid in family if alive(pid)]


def test_every_descendant_ends_when_the_server_itself_is_killed(gateway: subprocess.Popen[bytes]) -> None:
    reaper = next(pid for pid in descendants(gateway.pid) if _command(pid)[1:3] == ["-I", "-S"])
    family = descendants(reaper)
    shell = next(pid for pid in family if _command(pid)[:2] == ["sh", "-c"])
    os.kill(shell, signal.SIGKILL)
    assert eventually(lambda: not any(map(alive, [*family, reaper])))


def test_a_server_that_ignores_sigterm_is_killed() -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(300)"
    )
    command = [sys.executable, "-I", "-S", REAPER, str(os.getpid()), sys.executable, "-c", stubborn]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    family = descendants(process.pid)
    process.terminate()
    process.wait(60)
    assert eventually(lambda: not any(map(alive, family)))
    process.stdout.close()


def test_the_servers_exit_code_is_handed_on() -> None:
    command = [sys.executable, "-I", "-S", REAPER, str(os.getpid()), sys.executable, "-c", "raise SystemExit(7)"]
    assert subprocess.run(command, check=False).returncode == 7


def test_the_servers_end_of_its_streams_is_the_only_one() -> None:
    command = [sys.executable, "-I", "-S", REAPER, str(os.getpid()), "sh", "-c", "exec >&-; sleep 300"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.read() == b"", "end of file although the reaper still runs"
    process.terminate()
    process.wait(60)
    process.stdin.close()
    process.stdout.close()


def _command(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
