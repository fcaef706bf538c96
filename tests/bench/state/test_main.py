from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.gateways.mcp.gateway.session_changes import SessionBook
from pegboard.stores import MemorySessions
from pegboard.testing import FakeClock
from pegboard_bench.page import studies
from pegboard_bench.ports import free_port
from pegboard_bench.state import __main__ as bench
from pegboard_bench.state import sessions
from pegboard_bench.state.measure import measure
from pegboard_bench.state.stores import opened

WORKS = ("observe", "session_save", "session_load", "spend")


async def test_every_kind_of_work_is_measured_on_every_store_alone_and_together(tmp_path: Path) -> None:
    async with opened("memory", {}, tmp_path) as memory, opened("sqlite", {}, tmp_path) as sqlite:
        times = await measure({"memory": memory, "sqlite": sqlite}, 2, lambda done, total: None)

    assert set(times) == {each for work in WORKS for each in (work, f"{work}/16")}
    assert {len(values) for found in times.values() for values in found.values()} == {32}


async def test_a_session_that_is_measured_is_as_the_gateway_leaves_it(clock: FakeClock) -> None:
    store = MemorySessions(clock)
    await sessions.fill(book := SessionBook(store), 3)

    left = await book.find(f"{2:032x}")
    assert left is not None
    assert (len(left.enabled), left.version) == (len(sessions.session(2).enabled), 3)
    assert left.client == sessions.CLIENT


def test_a_server_that_does_not_answer_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "_room", lambda name, urls, folder: {"process": 5_000_000, "store": 1_000_000})
    nowhere = f"127.0.0.1:{free_port()}"

    bench.main(
        redis=f"redis://me:s3cret@{nowhere}/0",
        postgres=f"postgresql://me:s3cret@{nowhere}/db",
        out=tmp_path,
        page=tmp_path / "page.md",
        rounds=1,
    )

    found = json.loads((tmp_path / "state.json").read_text())
    assert found["tables"]["missing"].keys() == {"redis", "postgres"}
    assert found["figures"]["rss_mb_10000_sessions/sqlite"] == 5
    assert {"observe_p50_ms/memory", "observe_p95_ms/sqlite/16", "spend_p50_ms/sqlite"} <= found["figures"].keys()
    page = (tmp_path / "page" / "state.md").read_text()
    assert page == studies(tmp_path)["state"]
    assert "Not measured: Redis. " in page
    assert "s3cret" not in page + (tmp_path / "state.json").read_text() + "".join(capsys.readouterr())
