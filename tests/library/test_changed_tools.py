"""Tools that come and go on a board: what is kept, what is made again, and what a turn sees meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pegboard import Board, Call
from pegboard.errors import CatalogError
from pegboard.model import Floats
from pegboard.testing import FakeEncoder

TOOLS: list[Any] = [
    {"name": f"task_{number}", "description": f"Do the task of number {number}"} for number in range(50)
]
TIDE = {"name": "tide", "description": "When the tide is high at a harbour"}


class SlowEncoder(FakeEncoder):
    """Encodes nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()  # set by another thread than that of the board's loop

    async def encode(self, texts: Any) -> Floats:
        await asyncio.to_thread(self.may.wait)
        return await super().encode(texts)


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Any]:
    return {"cache_dir": tmp_path, "state_dir": tmp_path}


@pytest.mark.requirement("library.changed-tools")
def test_only_a_new_tool_is_embedded(folders: dict[str, Any]) -> None:
    encoder = FakeEncoder()
    with Board(TOOLS, encoder=encoder, **folders) as board:
        board.route_now("do task 7")
        encoder.encoded.clear()
        board.add_tools([TIDE])
        decision = board.route_now("when is high tide at the harbour?")

        assert decision.candidates[0].tool.name == "tide"
        assert all("tide" in text or text == decision.query for text in encoder.encoded)


def test_a_tool_whose_schema_has_false_in_the_place_of_zero_is_another(folders: dict[str, Any]) -> None:
    def tide(value: object) -> dict[str, Any]:
        return TIDE | {"parameters": {"type": "object", "properties": {"low": {"default": value}}}}

    with Board([tide(0)], encoder=FakeEncoder(), **folders) as board:
        board.route_now("when is high tide?")
        board.add_tools([tide(False)])
        schema = board.route_now("when is high tide?").tools[0].input_schema

    assert schema is not None
    assert schema["properties"]["low"]["default"] is False


def test_a_board_whose_tools_came_one_by_one_ranks_like_one_that_had_them_all(folders: dict[str, Any]) -> None:
    with Board(TOOLS, encoder=FakeEncoder(), **folders) as grown:
        grown.route_now("do task 7")
        grown.add_tools([TIDE])
        grown.route_now("do task 7")
        grown.add_tools([{"name": "wind", "description": "How strong the wind blows"}])
        grown.remove_tools(["task_3", "local/task_4"])
        rest = [tool for tool in TOOLS if tool["name"] not in ("task_3", "task_4")]
        whole = Board(
            [*rest, TIDE, {"name": "wind", "description": "How strong the wind blows"}], encoder=FakeEncoder()
        )
        with whole:
            for query in ("is the tide high?", "do the task of number 40", "strong wind"):
                one, other = grown.route_now(query), whole.route_now(query)
                assert [each.tool for each in one.candidates] == [each.tool for each in other.candidates]
                assert one.phase2_tokens == other.phase2_tokens


def test_a_tool_of_the_same_name_is_replaced_with_its_function(folders: dict[str, Any]) -> None:
    with Board([({"name": "tide"}, lambda: "16:20")], encoder=FakeEncoder(), **folders) as board:
        board.add_tools([({"name": "tide", "description": "The tide today"}, lambda: "17:05")])
        decision = board.route_now("the tide?")

        assert [tool.description for tool in board.catalog.tools] == ["The tide today"]
        assert board.execute_now(Call(name="tide"), decision).text == "17:05"
        board.add_tools([{"name": "tide"}])
        assert board.execute_now(Call(name="tide"), board.route_now("the tide?")).is_error


def test_one_name_need_not_be_in_a_list(folders: dict[str, Any]) -> None:
    board = Board([{"name": "tide"}, {"name": "wind"}], encoder=FakeEncoder(), **folders)
    board.remove_tools("wind")

    assert [tool.name for tool in board.catalog.tools] == ["tide"]


def test_what_is_not_there_cannot_be_removed(folders: dict[str, Any]) -> None:
    with Board(TOOLS, encoder=FakeEncoder(), **folders) as board, pytest.raises(CatalogError, match="'task_7000'"):
        board.remove_tools(["task_1", "task_7000"])


def test_a_removed_tool_is_neither_offered_nor_called(folders: dict[str, Any]) -> None:
    with Board([*TOOLS, (TIDE, lambda: "16:20")], encoder=FakeEncoder(), **folders) as board:
        before = board.route_now("high tide?")
        board.remove_tools(["tide"])
        assert "tide" not in [each.tool.name for each in board.route_now("high tide?").candidates]
        assert board.execute_now(Call(name="tide"), before).is_error


@pytest.mark.requirement("library.changed-tools")
def test_until_its_tools_are_embedded_a_board_ranks_by_words_and_says_so(folders: dict[str, Any]) -> None:
    encoder = SlowEncoder()
    with Board([*TOOLS, TIDE], encoder=encoder, index_wait=0.0, **folders) as board:
        decision = board.route_now("when is high tide at the harbour?")
        assert decision.ranked_by == "words"
        assert decision.candidates[0].tool.name == "tide"

        encoder.may.set()
        end = time.monotonic() + 60
        while decision.ranked_by == "words" and time.monotonic() < end:
            decision = board.route_now("when is high tide at the harbour?")
        assert decision.ranked_by == "meaning"
        with Board([*TOOLS, TIDE], encoder=FakeEncoder()) as ready:
            expected = ready.route_now("when is high tide at the harbour?")
        assert decision.candidates == expected.candidates
        assert decision.active == expected.active


def test_progress_counts_the_tools_as_they_are_embedded(folders: dict[str, Any]) -> None:
    seen: list[tuple[int, int]] = []
    with Board(TOOLS, encoder=FakeEncoder(), **folders) as board:
        board.warm_now(lambda done, total: seen.append((done, total)))

        assert seen[-1] == (50, 50)
        assert board.route_now("do task 7").ranked_by == "meaning"


def test_summaries_and_aliases_of_the_settings_hold_after_a_change(folders: dict[str, Any]) -> None:
    aliases = {"local/tide": ("sea level",)}
    with Board([TIDE], encoder=FakeEncoder(), aliases=aliases, **folders) as board:
        board.route_now("x")
        board.add_tools([{"name": "wind"}])

        assert board.catalog.tools[0].aliases == ("sea level",)
