"""A process that writes state to a file is killed in mid-write: at most what was being written is lost."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import astuple
from pathlib import Path

import pytest

from pegboard.averages import PRIOR, SMOOTHING, after_all
from pegboard.clock import SystemClock
from pegboard.errors import SpendLimitReached
from pegboard.model import Outcome, ToolId
from pegboard.spend_limits import Account, Limits, NanoUsd
from pegboard.stores import SqliteLessons, SqlitePins, SqliteSessions, SqliteSpend, SqliteStatistics

ROUNDS = int(os.environ.get("TEST_KILLS", "4"))
"""How often the process is killed."""
TOOL = ToolId("git", "log")
CALL = Outcome(tool=TOOL, success=True, latency_ms=40)

WRITER = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from pegboard.clock import SystemClock
from pegboard.model import Fingerprint, Outcome, Session, ToolId
from pegboard.spend_limits import Account, Limits, NanoUsd
from pegboard.stores import SqliteLessons, SqlitePins, SqliteSessions, SqliteSpend, SqliteStatistics
from pegboard.traffic import Seen

async def main(path):
    clock = SystemClock()
    sessions, statistics = SqliteSessions(path, clock, ttl=9e9), SqliteStatistics(path)
    spend, pins, lessons = SqliteSpend(path, clock, hold=9e9), SqlitePins(path), SqliteLessons(path)
    tools = [ToolId("git", name) for name in ("log", "show", "diff")]
    session = await sessions.load("one") or Session(id="one")
    while True:
        session = await sessions.save(replace(session, notices=session.version + 1))
        await statistics.observe([Outcome(tool=tool, success=True, latency_ms=40) for tool in tools])
        await lessons.add({key: Seen(requests=1.0) for key in ("a", "b", "c")})
        held = await spend.reserve(Account(session="one"), NanoUsd(5), Limits())
        await spend.settle(held, NanoUsd(3))
        await pins.put({tool: Fingerprint(str(session.version)) for tool in tools})
        print(session.version, flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


def killed(path: Path, moment: float) -> int:
    """Let it write, kill it so many seconds after its first round; the last version it said it had written."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(moment)
    process.send_signal(signal.SIGKILL)
    lines = (first + process.communicate()[0]).splitlines(keepends=True)
    assert process.returncode == -signal.SIGKILL
    return int([line for line in lines if line.endswith("\n")][-1])


async def charged(path: Path) -> int:
    """What is spent and held, as a refusal says it."""
    store = SqliteSpend(path, SystemClock())
    with pytest.raises(SpendLimitReached) as caught:
        await store.reserve(Account(session="one"), NanoUsd(2**50), Limits(session=NanoUsd(0)))
    store.close()
    return caught.value.used


@pytest.mark.timeout(600)
async def test_a_file_survives_its_writers_death_with_at_most_one_write_lost(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    for deaths in range(1, ROUNDS + 1):
        said = killed(path, 0.003 + 0.011 * (deaths % 7))
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        sessions, statistics = SqliteSessions(path, SystemClock(), ttl=9e9), SqliteStatistics(path)
        pins, lessons = SqlitePins(path), SqliteLessons(path)

        session = await sessions.load("one")
        known = await statistics.read()
        seen = await pins.get(list(known))
        [turns] = {each.requests for each in (await lessons.read(["a", "b", "c"])).values()}

        assert session
        assert session.notices == session.version
        assert session.version in (said, said + 1)
        [counts] = {astuple(each) for each in known.values()}
        calls = known[TOOL].calls
        assert session.version - deaths <= calls <= session.version
        assert counts == astuple(after_all(PRIOR, [CALL] * calls, SMOOTHING))
        assert session.version - deaths <= turns <= session.version
        assert session.version * 3 - 3 * deaths <= await charged(path) <= session.version * 3 + 2 * deaths
        assert len({pin.seen for pin in seen.values()}) == 1
        for store in (sessions, statistics, pins, lessons):
            store.close()
