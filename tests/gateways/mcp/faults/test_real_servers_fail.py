"""Servers that people use, from PyPI and npm, killed and stopped: they come back, and nothing of them is left.

They are installed by `python scripts/install_servers.py`, as for tests/gateways/mcp/test_real_servers.py.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faults import descriptors
from pegboard.errors import UpstreamError
from pegboard.model import ToolId
from pegboard.settings.client_configs import load_document, servers_of
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet
from processes import alive, descendants, until

MakeFleet = Callable[..., Fleet]

CONFIG = Path(__file__).parents[4] / ".demo" / "mcp.json"
CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "time": ("get_current_time", {"timezone": "Europe/Oslo"}, "Europe/Oslo"),
    "everything": ("echo", {"message": "hällo 🪝"}, "hällo 🪝"),
}
KILLS = 6

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.timeout(600),
    pytest.mark.requirement("M13"),
    pytest.mark.requirement("M23"),
]


@pytest.fixture
def specs() -> list[ServerSpec]:
    known = servers_of(load_document(CONFIG), CONFIG) if CONFIG.exists() else {}
    found = [known[name] for name in CALLS if name in known]
    if not found and os.environ.get("CI"):
        pytest.fail("CI installs the servers with scripts/install_servers.py")
    if not found:
        pytest.skip("install the servers with: python scripts/install_servers.py")
    return found


async def answered(fleet: Fleet, name: str) -> bool:
    tool, arguments, expected = CALLS[name]
    result = await fleet.call(ToolId(name, tool), arguments)
    return expected in result["content"][0]["text"]


def family() -> dict[int, list[int]]:
    """Of each watcher that this process started: the server and all its descendants, the server first."""
    mine = descendants(os.getpid())
    watchers = [pid for pid in mine if "reaper.py" in Path(f"/proc/{pid}/cmdline").read_text()]
    return {pid: descendants(pid) for pid in watchers}


async def test_real_servers_that_are_killed_again_and_again_come_back_and_leave_nothing(
    fleet_of: MakeFleet, specs: list[ServerSpec]
) -> None:
    seen: set[int] = set()
    async with fleet_of(*specs, lazy=True, connect_timeout=60.0) as fleet:
        await fleet.settled(60)
        before = descriptors()
        for _ in range(KILLS):
            assert all(await asyncio.gather(*(answered(fleet, spec.name) for spec in specs)))
            running = family()
            assert len(running) == len(specs)
            seen |= {pid for pids in running.values() for pid in pids}
            for pids in running.values():
                os.kill(pids[0], signal.SIGKILL)
            await until(lambda: all(status.state != "ready" for status in fleet.status()))
        assert all(await asyncio.gather(*(answered(fleet, spec.name) for spec in specs)))
        await until(lambda: descriptors() <= before)
    assert len(seen) >= KILLS * len(specs)
    await until(lambda: not any(map(alive, seen)) and not family())


async def test_real_servers_that_stop_are_found_out_by_a_call_and_started_again(
    fleet_of: MakeFleet, specs: list[ServerSpec]
) -> None:
    async with fleet_of(*specs, call_timeout=2.0, health_timeout=1.0, connect_timeout=60.0) as fleet:
        await fleet.settled(60)
        stopped = [pid for pids in family().values() for pid in pids]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        for spec in specs:
            with pytest.raises(UpstreamError, match="did not answer"):
                await answered(fleet, spec.name)
        await until(lambda: not any(map(alive, stopped)))
        await until(lambda: all(status.state == "ready" for status in fleet.status()))
        assert all(await asyncio.gather(*(answered(fleet, spec.name) for spec in specs)))
