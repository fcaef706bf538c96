"""Boards of users with the same tools share what is read from them; others share nothing."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from pegboard import Catalog
from pegboard.compose import build_routing, default_parts
from pegboard.compose.board_parts import Parts
from pegboard.model import Server, ServerName, Tool
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard.shared_indexes import SharedIndexes
from pegboard.testing import FakeEncoder, fake_tool

pytestmark = pytest.mark.requirement("023.shared")

SERVER = Server(name=ServerName("notes"), description="Notes")
TOOLS = [fake_tool("find", "Find notes", server="notes"), fake_tool("write", "Write a note", server="notes")]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path, state_dir=tmp_path)


@pytest.fixture
def parts(settings: Settings) -> Parts:
    return default_parts(settings, encoder=FakeEncoder())


def board_with(shared: SharedIndexes, settings: Settings, parts: Parts, *tools: Tool) -> RoutingBoard:
    made = build_routing(settings, Catalog.build([]), parts=parts, shared=shared)
    made.replace_catalog(Catalog.build([(SERVER, tools)]))
    return made


async def test_boards_with_the_same_tools_index_them_once(settings: Settings, parts: Parts) -> None:
    shared = SharedIndexes()
    ann, bob = (board_with(shared, settings, parts, *TOOLS) for _ in range(2))
    assert ann.catalog is bob.catalog
    assert ann._retrievers[0] is bob._retrievers[0]
    assert await ann.search_index() is await bob.search_index()
    assert (await ann.route("find my notes")).active == (await bob.route("find my notes")).active


async def test_one_more_tool_is_another_catalog_and_no_one_elses(settings: Settings, parts: Parts) -> None:
    shared = SharedIndexes()
    diary = fake_tool("diary_of_ann", "The secret diary of ann", server="notes")
    ann, bob = board_with(shared, settings, parts, *TOOLS, diary), board_with(shared, settings, parts, *TOOLS)
    assert ann._retrievers[0] is not bob._retrievers[0]
    assert diary.id not in bob.catalog
    assert diary.id in {each.tool for each in await ann.rank("secret diary")}
    assert diary.id not in {each.tool for each in await bob.rank("secret diary")}


def test_equal_texts_in_other_objects_are_not_shared(settings: Settings, parts: Parts) -> None:
    """The connections decide what is equal to the byte; here only objects count."""
    shared = SharedIndexes()
    again = [fake_tool(tool.name, tool.description, server="notes") for tool in TOOLS]
    assert (
        board_with(shared, settings, parts, *TOOLS).catalog is not board_with(shared, settings, parts, *again).catalog
    )


def test_indexes_are_gone_with_the_last_board(settings: Settings, parts: Parts) -> None:
    shared = SharedIndexes()
    board = board_with(shared, settings, parts, *TOOLS)
    assert len(shared._catalogs) == 1
    del board
    gc.collect()
    assert not shared._catalogs
    assert not shared._retrievers
