"""The searches over a fleet: a part of them, over the servers they are about; `make bench-searches` has all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.catalog import Catalog
from pegboard.retrieval.exact_names import ExactNames
from pegboard.retrieval.search_index import SearchIndex
from pegboard_bench import results
from pegboard_bench.fleet.searches import NONE, SERVICE, answers, figures, searches
from pegboard_bench.fleet.searches_page import section
from pegboard_bench.fleet.snapshot import catalog

NAME = "name"
SOME = ("airtable", "git", "github", "kubernetes", "slack")


@pytest.fixture(scope="module")
def fleet() -> Catalog:
    return catalog()


def test_the_searches_are_about_the_snapshot(fleet: Catalog) -> None:
    asked = searches()
    known = {str(tool.id) for tool in fleet.tools}

    assert len(fleet.servers) >= 23
    assert len(fleet) >= 800
    assert len(asked) >= 200
    assert len({search.query for search in asked}) == len(asked)
    assert sum(search.kind == NONE for search in asked) >= 40
    assert all(bool(search.tools) != (search.kind == NONE) for search in asked)
    assert known.issuperset(tool for search in asked for tool in search.tools)


def test_every_exact_name_is_found_in_any_spelling(fleet: Catalog) -> None:
    names = ExactNames(fleet.tools)

    for search in searches():
        if search.kind == NAME:
            found = {str(fleet.tools[place].id) for place in names.find(search.query)}
            assert found.intersection(search.tools), search.query


def test_a_service_that_is_named_is_recognized(fleet: Catalog) -> None:
    index = SearchIndex(fleet.tools, fleet.servers)

    for search in searches():
        if search.kind == SERVICE:
            named = {str(tool) for tool in index.named(index.corrected(search.query))}
            assert set(search.tools) <= named or search.query.startswith("filesystem"), search.query


async def test_searches_over_some_of_the_servers_reach_what_is_promised(fleet: Catalog, tmp_path: Path) -> None:
    board = Catalog.build([(fleet.servers[name], fleet.of_server(name)) for name in SOME])
    known = {str(tool.id) for tool in board.tools}
    asked = [search for search in searches() if search.kind == NONE or known.issuperset(search.tools)]

    reached = figures(await answers(board, asked), board)

    assert reached["first/all"] >= 0.82
    assert reached["first_five/all"] >= 0.95
    assert reached["first/exact_names"] == 1
    assert reached["filled/service"] >= 0.95
    assert reached["no_match/detected/all"] >= 0.85
    assert reached["no_match/false/all"] <= 0.04
    path = results.write(
        "searches",
        command="make bench-searches",
        seed=0,
        figures=reached,
        tables={"kinds": dict.fromkeys(("service", "keywords", NONE), 1), "wrong": []},
        folder=tmp_path,
    )
    assert "what no server has" in section(json.loads(path.read_text("utf-8")))
