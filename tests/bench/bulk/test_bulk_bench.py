"""The benchmark of indexing in bulk, on few tools."""

from __future__ import annotations

import asyncio
import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pegboard.catalog.ingest import read_catalog
from pegboard.compose.shard_jobs import ShardJob
from pegboard_bench.bulk import cost, killed, one_run, page, throughput, warm
from pegboard_bench.bulk.__main__ import of_killed
from pegboard_bench.bulk.catalogs import rows_of, write_catalog
from pegboard_bench.results import check

SLOW_MAKER = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
for number in range(10):
    path = folder / f"{number:05}.json"
    if not path.exists():
        time.sleep(0.05)
        path.with_suffix(".new").write_text(str(number))
        path.with_suffix(".new").replace(path)
"""


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """Four tools of two servers, two of which are the same."""
    said = {"read_page": "Reads a page, then another.", "list_pages": "Lists pages.", "draw": "Draws a line on a map."}
    schema = {"type": "object", "properties": {"page": {"type": "string", "description": "Which page"}}}
    rows = [
        {"server": server, "name": name, "description": said[name], "input_schema": schema}
        for server, name in (("web", "read_page"), ("web", "list_pages"), ("map-maker", "draw"), ("web2", "list_pages"))
    ]
    write_catalog(rows, tmp_path / "catalog.jsonl.gz")
    return tmp_path / "catalog.jsonl.gz"


def test_made_tools_follow_the_real_ones_and_have_one_text_each(catalog: Path, tmp_path: Path) -> None:
    rows, real = rows_of(catalog, 20, seed=1)
    write_catalog(rows, tmp_path / "more.jsonl.gz")
    tools = read_catalog(tmp_path / "more.jsonl.gz").tools

    assert (len(tools), real) == (20, 3), "the tool that is there twice counts once"
    assert rows_of(catalog, 2, seed=1) == (rows[:2], 2)
    made = [tool for tool in tools if tool.server.startswith("copies")]
    assert len({(tool.id, tool.description) for tool in made}) == 17
    assert len(ShardJob(folder=tmp_path, name="", tools=tuple(made), servers=()).texts) == 17


def test_moments_are_in_order_and_every_victim_has_its_turn() -> None:
    moments = killed.moments(5, 1, most_delay=2.0)

    assert moments == killed.moments(5, 1, most_delay=2.0) != killed.moments(5, 2, most_delay=2.0)
    assert [each.at for each in moments] == sorted(each.at for each in moments)
    assert {each.victim for each in moments} == set(killed.VICTIMS)
    assert all(0 <= each.delay <= 2 for each in moments)


def test_a_worker_is_what_makes_shards_and_no_agent_of_ray() -> None:
    commands = {1: "raylet --raylet_socket_name=x", 2: "ray::DashboardAgent", 3: "ray::RuntimeEnvAgent", 4: "ray::IDLE"}

    assert killed.makers("ray", commands | {5: "ray::_build_shard", 6: "ray::_build_shard()"}) == [5, 6]
    assert killed.makers("local", {1: "python -c from multiprocessing.spawn import spawn_main; spawn_main()"}) == [1]


class SlowJob(killed.Job):
    """In place of the command: ten files, one after the other."""

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", SLOW_MAKER, str(out)], start_new_session=True)


def test_a_run_whose_driver_is_killed_is_started_again_until_all_is_done(tmp_path: Path) -> None:
    job = SlowJob(catalog=tmp_path, tools=10, engine="local", workers=1, shard_size=1)
    killed.undisturbed(job, tmp_path / "whole")
    kills = [killed.Kill(at=at, delay=0.01, victim="the driver") for at in (0.1, 0.5)]

    found = killed.disturbed(job, tmp_path / "broken", kills, say=lambda line: None)

    assert (len(found.kills), found.starts, found.went_on, found.left) == (2, 3, 0, 0)
    whole, broken = killed.digests(tmp_path / "whole"), killed.digests(tmp_path / "broken")
    broken.pop("00000.new", None)
    assert {name: broken[name] for name in whole} == whole
    assert killed.differing(whole, whole | {"more": "1", "00000.json": "2"}) == ["00000.json", "more"]


def test_a_run_that_fails_by_itself_is_not_started_again(tmp_path: Path) -> None:
    job = SlowJob(catalog=tmp_path, tools=10, engine="local", workers=1, shard_size=1)

    with pytest.raises(RuntimeError, match="was not killed"):
        killed.disturbed(job, tmp_path / "no" / "folder", [], say=lambda line: None)


def test_a_run_that_nobody_killed_is_kept_for_the_code_that_made_it_alone(tmp_path: Path) -> None:
    note, seconds = tmp_path / "note.json", iter((1.0, 2.0, 3.0, 4.0))

    def asked(code: str) -> float:
        return killed.kept_seconds(note, code, lambda: next(seconds))

    assert [asked("a"), asked("a"), asked("b"), asked("b-dirty"), asked("b-dirty")] == [1.0, 1.0, 2.0, 3.0, 4.0]


@pytest.mark.requirement("scale.shards")
def test_a_start_with_shards_embeds_nothing_and_one_without_them_everything(catalog: Path, tmp_path: Path) -> None:
    shards, notes = tmp_path / "shards", tmp_path / "notes"
    notes.mkdir()
    one_run.main(str(catalog), str(shards), "local", "1", "3", str(notes))
    noted = [json.loads(path.read_text()) for path in notes.iterdir()]
    assert sum(each["tools"] for each in noted) == 4
    assert all(each["began"] < each["ended"] for each in noted)

    cold, with_shards = (asyncio.run(warm.started(catalog, each)) for each in (None, shards))

    assert (with_shards["texts"], with_shards["texts_a_decision"]) == (0, 1)
    assert cold["texts"] >= 2 * cold["tools"] - 1


def test_the_page_has_what_was_measured(catalog: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = [{"began": 11.0 + each, "ended": 12.0 + each, "cpu_s": 0.9, "tools": 50} for each in range(4)]
    one = throughput.summed(shards, workers=1, began=10.0, whole_s=5.0)
    assert (one.tools_per_s, one.start_s) == (50.0, 1.0)
    ray = replace(one, workers=2, seconds=2.0, whole_s=4.0)
    runs = {"one": [one, one], "ray": [ray, ray]}
    figures = throughput.figures(runs) | cost.figures(catalog)
    assert (figures["ratio/ray"], figures["ratio_with_start/ray"], figures["cpu_ms/one"]) == (1.0, 0.625, 18.0)
    machine = {"cores": 2, "cpu": "x", "python": "3.11"}
    stamp: dict[str, Any] = {"date": "2026-11-27", "commit": "0" * 40, "machine": machine, "load": 1.0, "real": 3}
    sizes = {"tools": 200, "rounds": 2, "workers": 2, "shard_size": 50, "load_before": 0.1, "cost_of": 200}
    tables: dict[str, Any] = {"throughput": stamp | sizes | {"runs": {"one": [], "ray": []}}}

    monkeypatch.setattr(killed, "Job", SlowJob)
    of_kills, table = of_killed(catalog, 10, 1, 0, "local", tmp_path / "work")
    assert (of_kills["files_that_differ"], of_kills["starts"], table["real"]) == (0, 1, 3)
    check(figures | of_kills)
    shown = page.section(
        {"command": "make bench-bulk", "figures": figures | of_kills, "tables": tables | {"killed": stamp | table}}
    )

    assert "| 2 workers of Ray | 100.0 (100.0, 100.0) | 18.0 (18.0, 18.0) | 20.0 (20.0, 20.0) | 1.00" in shown
    assert "Of 10 files (0 MB), 0 differ" in shown
    assert "### A start" not in shown


def test_a_catalog_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_catalog([{"server": "a", "name": "é"}], tmp_path / name)

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert json.loads(gzip.decompress((tmp_path / "one").read_bytes())) == {"server": "a", "name": "é"}
