"""What an agent leaves running is ended with it, also a daemon in a session of its own."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from pegboard_bench.coding_agents.sessions import end_agent

DAEMON = "setsid sleep 600 > /dev/null 2>&1 & echo $!; wait"


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are read from /proc")
def test_a_daemon_of_the_agent_is_ended_and_nobody_elses(tmp_path: Path) -> None:
    agents = [agent(tmp_path / name) for name in ("first", "second")]
    daemons = [started(each) for each in agents]
    try:
        end_agent(agents[0], tmp_path / "first")

        assert agents[0].returncode is not None
        assert ended(daemons[0])
        assert agents[1].poll() is None
        assert Path(f"/proc/{daemons[1]}/stat").read_text().split()[2] != "Z"
    finally:
        end_agent(agents[1], tmp_path / "second")


def agent(home: Path) -> subprocess.Popen[bytes]:
    command = ["sh", "-c", DAEMON]
    return subprocess.Popen(
        command, env=os.environ | {"HOME": str(home)}, stdout=subprocess.PIPE, start_new_session=True
    )


def started(process: subprocess.Popen[bytes]) -> int:
    """The process id of its daemon."""
    assert process.stdout is not None
    with process.stdout as said:
        return int(said.readline())


def ended(pid: int, patience: float = 10.0) -> bool:
    """Whether a process is gone, or a zombie that nobody waits for."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False
