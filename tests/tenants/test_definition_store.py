"""Each definition is kept once: public ones for all, private ones for each owner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pegboard.catalog.ingest import tool_from_mcp
from pegboard.errors import CatalogError
from pegboard.model import Server, ServerName, Tool, ToolId
from pegboard.tenants.definition_store import PUBLIC, DefinitionStore, ServerRows
from pegboard.testing import fake_tool

pytestmark = pytest.mark.requirement("scale.tenants")

SEA = Server(name=ServerName("sea"))
TIDE = fake_tool("tide", "When the tide comes", server="sea")
WIND = fake_tool("wind", "How the wind blows", server="sea")


def listed(store: DefinitionStore, owner: str, *tools: Tool, vector: float = 1.0) -> ServerRows:
    vectors = np.full((len(tools), 2), vector, np.float32)
    rows = store.keep(store.keys(owner, tools), tools, vectors, [7] * len(tools))
    return ServerRows(server=SEA, owner=owner, rows=rows, profile=np.ones(2, np.float32))


def test_a_public_definition_is_one_row_however_many_list_it() -> None:
    store = DefinitionStore()
    first, again = listed(store, PUBLIC, TIDE, WIND), listed(store, PUBLIC, WIND)
    assert len(store) == 2
    assert again.rows.tolist() == first.rows[1:].tolist()


def test_equal_definitions_of_two_owners_are_two_rows() -> None:
    store = DefinitionStore()
    mine, its, everybodys = (listed(store, owner, TIDE) for owner in ("acme", "other", PUBLIC))
    assert len({mine.rows[0], its.rows[0], everybodys.rows[0]}) == 3


def test_owners_and_servers_are_told_apart_wherever_their_names_end() -> None:
    store = DefinitionStore()
    moved = replace(TIDE, id=ToolId("bsea", "tide"))
    assert store.keys("ab", [TIDE]) != store.keys("a", [moved])


def test_a_row_that_nobody_lists_is_used_again_with_the_next_definition() -> None:
    store = DefinitionStore()
    first = listed(store, "acme", TIDE)
    store.release(first.rows)
    second = listed(store, "other", WIND, vector=3.0)
    assert len(store) == 1
    assert second.rows.tolist() == first.rows.tolist()
    assert store.tools(second) == (WIND,)
    assert store.vectors(second).tolist() == [[3.0, 3.0]]


def test_a_row_that_another_listing_has_stays() -> None:
    store = DefinitionStore()
    old, new = listed(store, PUBLIC, TIDE), listed(store, PUBLIC, TIDE, WIND)
    store.release(old.rows)
    assert store.tools(new) == (TIDE, WIND)


def test_public_tools_are_objects_that_all_share_and_private_ones_are_not() -> None:
    store = DefinitionStore()
    public, private = listed(store, PUBLIC, TIDE), listed(store, "acme", TIDE)
    (first,), (again,) = store.tools(public), store.tools(public)
    assert first is again
    (mine,) = store.tools(private)
    assert mine == first
    assert mine is not first


def test_a_row_that_is_used_again_is_not_read_as_what_it_was() -> None:
    store = DefinitionStore()
    first = listed(store, PUBLIC, TIDE)
    kept = store.tools(first)
    store.release(first.rows)
    assert store.tools(listed(store, PUBLIC, WIND)) == (WIND,)
    assert kept == (TIDE,)


@pytest.mark.parametrize(
    "tool",
    [
        fake_tool("tide", "Größe der Flut \ud800", server="sea"),
        replace(TIDE, summary="tide: when", category="water", aliases=("flood", "ebb"), title="Tide"),
        Tool(id=ToolId("sea", "bare"), definition={"name": "bare"}, description="said elsewhere"),
        tool_from_mcp(
            "sea",
            {
                "name": "deep",
                "title": "Deep",
                "inputSchema": {"type": "object", "properties": {"at": {"enum": [1, 2.5, None]}}},
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
                "_meta": {"category": "water"},
            },
        ),
        replace(TIDE, input_schema=None),
        replace(TIDE, id=ToolId("sea", "renamed")),
    ],
)
def test_a_tool_comes_back_as_it_was(tool: Tool) -> None:
    store = DefinitionStore()
    assert store.tools(listed(store, "acme", tool)) == (tool,)


def test_what_is_no_json_is_refused_by_name() -> None:
    odd = Tool(id=ToolId("sea", "odd"), definition={"name": "odd", "default": object()})
    with pytest.raises(CatalogError, match="sea/odd"):
        DefinitionStore().keys(PUBLIC, [odd])


def test_vectors_beyond_a_block_are_those_of_their_rows() -> None:
    store, tools = DefinitionStore(), [fake_tool(f"tool {number}", server="sea") for number in range(2_500)]
    vectors = np.arange(5_000, dtype=np.float32).reshape(2_500, 2)
    rows = store.keep(store.keys(PUBLIC, tools), tools, vectors, range(2_500))
    backwards = ServerRows(server=SEA, owner=PUBLIC, rows=rows[::-1], profile=np.ones(2, np.float32))
    assert np.array_equal(store.vectors(backwards), vectors[::-1])
    assert store.tokens(backwards)[:2] == (2_499, 2_498)
