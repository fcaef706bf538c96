from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pegboard.catalog import Catalog
from pegboard.compose import default_parts
from pegboard.errors import CatalogError
from pegboard.model import Server, ServerName
from pegboard.settings import Settings
from pegboard.testing import FakeEncoder, fake_tool
from pegboard_bench import results
from pegboard_bench.simulate import __main__ as bench
from pegboard_bench.simulate import grid, inputs, page, pictures
from pegboard_bench.simulate.cut import kept
from pegboard_bench.simulate.relevance import relevance
from pegboard_bench.simulate.run import SETS, Cell, Played, run
from pegboard_bench.simulate.summary import Summary
from pegboard_bench.simulate.world import SEEDS, draw, frozen
from simulated import asked, routes

ASKED = {"tasks": asked(), "routes": routes()}
CELLS = [
    Cell(asked=name, heterogeneity=h, copies=copies, passes=2 if h else 1)
    for h in (1.0, 0.0)
    for copies in (1, 2)
    for name in SETS
]
RESULTS = Path(__file__).parents[3] / "bench" / "results" / "simulate.json"


def played(cell: Cell) -> Played:
    worlds = [run(cell, ASKED[cell.asked], seed) for seed in (1, 2)]
    return {name: np.array([world[name] for world in worlds]) for name in worlds[0]}


@pytest.fixture(scope="module")
def summary() -> Summary:
    return Summary(found={cell: played(cell) for cell in CELLS}, asked=ASKED, seed=1)


@pytest.fixture(scope="module")
def tables(summary: Summary) -> dict[str, Any]:
    return summary.tables()


@pytest.fixture
def catalog() -> Catalog:
    tools = {
        "files": [fake_tool("read_file", "Read a file", server="files")],
        "mail": [fake_tool("send_mail", "Send a message", server="mail")],
        "empty": [],
    }
    return Catalog.build((Server(name=ServerName(name)), each) for name, each in tools.items())


def test_figures_have_the_names_that_the_design_promises(summary: Summary) -> None:
    figures = summary.figures()
    results.check(figures)

    for metric in ("success", "cost_usd", "tokens", "invalid_calls", "mrr", "recall@3"):
        for policy in ("saturation", "rag_mcp", "ehrr", "ehrr_no_auction", "hybrid", "hybrid_economics"):
            assert {f"{metric}/{policy}", f"{metric}/{policy}/routes"} <= figures.keys()
    assert "success/ehrr/routes/h0-copies2" in figures
    assert "kept_by_cut/tasks" in figures


def test_figures_are_the_means_of_the_tables(summary: Summary, tables: dict[str, Any]) -> None:
    figures, policies = summary.figures(), tables["policies"]["tasks"]

    for metric in ("success", "tokens", "utility", "seconds_to_success"):
        assert figures[f"{metric}/ehrr"] == pytest.approx(policies["ehrr"][metric][0], abs=1e-4)


def test_a_policy_compared_with_one_that_does_the_same_differs_by_nothing(summary: Summary) -> None:
    cell = summary.headline("tasks")
    same = {**summary.found[cell], "ehrr": summary.found[cell]["rag_mcp"]}
    twins = Summary(found={cell: same}, asked=ASKED, seed=1)

    assert twins.pairs(cell)["ehrr_over_rag_mcp"]["success_points"] == [0, 0, 0]


def test_what_is_spent_adds_up_over_the_tasks_as_they_came(summary: Summary, tables: dict[str, Any]) -> None:
    curves, figures = tables["curves"]["tasks"], summary.figures()
    costs = curves["cost_usd"]["ehrr"]

    assert costs == sorted(costs)
    assert costs[-1] == pytest.approx(figures["cost_usd/ehrr"], abs=1e-3)


def test_the_page_and_its_figures_say_what_was_found(summary: Summary, tables: dict[str, Any], tmp_path: Path) -> None:
    path = results.write(
        "simulate",
        command="make bench-simulate",
        seed=1,
        figures=summary.figures(),
        tables=tables,
        folder=tmp_path,
    )
    read = results.read(path)
    pictures.draw(read["tables"], tmp_path)
    text = page.section(read)

    assert text.count("\n| ") > 60
    for name in ("simulate-spent-tasks.svg", "simulate-grid-routes.svg"):
        assert f"({name})" in text
        assert (tmp_path / name).stat().st_size > 5_000
    assert f"{summary.figures()['success/hybrid']:.3f} [" in text


def test_worlds_that_were_played_are_not_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[tuple[Cell, int]] = []

    def run_here(wanted: list[tuple[Cell, int]], asked: object) -> list[tuple[tuple[Cell, int], Played]]:
        jobs.extend(wanted)
        return [((cell, seed), run(cell, ASKED[cell.asked], seed)) for cell, seed in wanted]

    monkeypatch.setattr(grid, "_run", run_here)
    cells = [Cell(asked="tasks")]
    first = grid.played(cells, [1], ASKED, tmp_path)
    second = grid.played(cells, [1, 2], ASKED, tmp_path)

    assert jobs == [(cells[0], 1), (cells[0], 2)]
    np.testing.assert_array_equal(first[cells[0]]["ehrr"][0], second[cells[0]]["ehrr"][0])


def test_the_grid_is_played_by_processes_of_its_own() -> None:
    cell = Cell(asked="tasks")
    (here,) = grid.played([cell], [3], ASKED).values()

    np.testing.assert_array_equal(here["hybrid_economics"][0], run(cell, ASKED["tasks"], 3)["hybrid_economics"])


def test_the_cut_keeps_what_is_on_the_five_most_similar_servers() -> None:
    found = kept(ASKED["tasks"])

    assert 0 < found["whole_after_cut"] <= found["kept_by_cut"] <= 1


async def test_texts_and_tools_are_compared_by_the_shipped_ranking(catalog: Catalog) -> None:
    parts = default_parts(Settings(), encoder=FakeEncoder())
    found = await relevance(["read a file", "send a message"], catalog, Settings(), parts)
    await parts.close()

    assert found.servers.shape == found.tools.shape == found.hybrid.shape == (2, 2)
    assert found.tools.argmax(axis=1).tolist() == [0, 1]
    assert found.hybrid.argmax(axis=1).tolist() == [0, 1]
    assert found.within(draw(catalog.tools, 1, copies=3)).tools.shape == (2, 6)


def test_another_catalog_is_not_taken_for_the_frozen_worlds(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="was frozen as"):
        inputs.check_frozen(catalog)


def test_without_data_nothing_is_measured_and_it_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.main(data=tmp_path, out=tmp_path / "out", cache=tmp_path / "cache")

    assert "livemcp_tasks, livemcp_routes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not RESULTS.exists(), reason="not measured yet")
def test_the_published_results_are_of_the_frozen_worlds() -> None:
    tables = json.loads(RESULTS.read_text("utf-8"))["tables"]

    assert tables["fingerprints"] == {str(seed): frozen()[seed] for seed in SEEDS}
