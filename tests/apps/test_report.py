"""`pegboard report`: the sums of a store, for a terminal, a browser and a spreadsheet."""

from __future__ import annotations

import asyncio
import csv
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.activity_entries import ActivityEntry
from pegboard.spend_limits import NanoUsd
from pegboard.stores import SqliteActivity

Run = Callable[..., Result]
NOW = time.time()
DAY = 86_400
EVIL = "<script>alert(1)</script>\x1b[2J"
ENTRIES = [
    ActivityEntry(
        id=str(number),
        at=NOW - ago * DAY,
        door="llm",
        kind="request",
        key=key,
        model=model,
        called=("now", "log") if number == 0 else (),
        tokens_before=4_000,
        tokens_after=1_000,
        saved=NanoUsd(600_000),
        input_tokens=9_000,
        cached_tokens=4_000,
        output_tokens=70,
        cost=NanoUsd(cost),
        unpriced=int(not cost),
    )
    for number, (ago, key, model, cost) in enumerate(
        [
            (0, "ann", "gpt-5.6", 2_500_000_000),
            (1, "=ann", "gpt-5.6", 250_000_000),
            (1, "bob", EVIL, 0),
            (20, "old", "gpt-5.6", 1_000_000_000),
        ]
    )
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    store = SqliteActivity(tmp_path / "activity.sqlite")
    asyncio.run(store.put(ENTRIES))
    store.close()
    made = tmp_path / "pegboard.toml"
    made.write_text(f'state_dir = "{tmp_path}"\n[activity]\nkeep = "store"\n')
    return made


def test_a_terminal_gets_the_sums_of_the_days_the_dearest_first(run: Run, config: Path) -> None:
    result = run("report", "--config", config)

    assert result.exit_code == 0, result.output
    lines = [line.replace("│", " ").split() for line in result.stdout.splitlines()]
    keys = [line[0] for line in lines if line and line[0] in ("ann", "=ann", "bob", "old")]
    assert keys == ["ann", "=ann", "bob"]
    assert ["ann", "1", "0", "9,000", "4,000", "70", "$2.5", "0", "3,000", "$0.0006"] in lines
    assert "In all: 3 decisions, $2.75 for models and 1 requests without a known price, $0.0018 saved." in result.stdout
    assert "\x1b" not in result.stdout


@pytest.mark.requirement("observability.money")
def test_json_and_csv_have_a_row_for_each_day_and_group(
    run_json: Callable[..., Any], config: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report.csv"

    told = run_json("report", "--config", config, "--since", "30d", "--csv", out)

    rows = {(row["by"], row["name"]): row for row in told["rows"]}
    assert sum(by == "day" for by, _ in rows) == 30
    assert rows["model", "gpt-5.6"]["cost_usd"] == "3.75"
    assert rows["tool", "now"]["cost_usd"] == rows["tool", "log"]["cost_usd"] == "2.5"
    assert rows["model", EVIL]["unpriced"] == 1
    written = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert len(written) == len(told["rows"])
    assert [row["name"] for row in written if row["by"] == "key"] == ["ann", "old", "'=ann", "bob"]


def test_a_page_is_one_file_that_loads_nothing_and_shows_markup_as_text(run: Run, config: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"

    assert run("report", "--config", config, "--html", out).exit_code == 0

    html = out.read_text("utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J" in html
    assert "src=" not in html
    assert "href=" not in html
    assert "$2.75" in html


def test_a_report_is_written_through_a_link_and_has_the_mode_of_other_files(
    run: Run, config: Path, tmp_path: Path
) -> None:
    real, link, new = tmp_path / "real.html", tmp_path / "link.html", tmp_path / "new.csv"
    real.write_text("")
    real.chmod(0o640)
    link.symlink_to(real)
    (tmp_path / "other").touch()

    assert run("report", "--config", config, "--html", link, "--csv", new).exit_code == 0

    assert link.is_symlink()
    assert "$2.75" in real.read_text("utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert new.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_report_may_go_to_a_device(run: Run, config: Path, tmp_path: Path) -> None:
    (tmp_path / "null").symlink_to("/dev/null")

    assert run("report", "--config", config, "--csv", tmp_path / "null").exit_code == 0
    assert Path("/dev/null").is_char_device()


def test_each_decision_goes_to_a_file(run: Run, config: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table, sheet = tmp_path / "all.parquet", tmp_path / "all.csv"

    assert run("report", "--config", config, "--since", "30d", "--decisions", table).output == ""
    assert run("report", "--config", config, "--decisions", sheet).exit_code == 0

    kept = parquet.read_table(table).to_pylist()
    newest = sorted(ENTRIES, key=lambda each: (each.at, each.id), reverse=True)
    assert [(row["id"], row["key"], row["cost"]) for row in kept] == [(each.id, each.key, each.cost) for each in newest]
    assert kept[0]["called"] == ["now", "log"]
    assert [row["key"] for row in csv.DictReader(sheet.read_text("utf-8").splitlines())] == ["ann", "bob", "'=ann"]


@pytest.mark.parametrize("since", ["0d", "7", "yesterday", "2999-01-01", "1999-01-01", "9999999d", "99999w"])
def test_a_time_that_cannot_be_is_refused(run: Run, config: Path, since: str) -> None:
    result = run("report", "--config", config, "--since", since)

    assert result.exit_code == 2
    assert "Write it as 7d, 4w or 2026-11-01." in result.stderr


def test_activity_that_only_a_process_has_is_said_to_be_there(run: Run, tmp_path: Path) -> None:
    made = tmp_path / "pegboard.toml"
    made.write_text(f'state_dir = "{tmp_path}"\n')

    result = run("report", "--config", made)

    assert result.exit_code == 2
    assert 'Set it to "store"' in result.stderr
