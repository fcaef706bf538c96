"""What the gateways have, the library has: search as way back, statistics, spend limits, events, limits on results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pegboard import Board, Call, ToolId
from pegboard.errors import ConfigError
from pegboard.events import Event
from pegboard.testing import FakeEncoder

LISTED = str(Path(__file__).parents[1] / "servers" / "listed.py")
TIDE = {"name": "tide", "description": "When the tide is high at a harbour"}
WIND = {"name": "wind", "description": "How strong the wind blows"}


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"encoder": FakeEncoder(), "cache_dir": tmp_path, "state_dir": tmp_path}


@pytest.mark.requirement("library.parity")
def test_what_a_turn_did_not_get_a_search_finds_and_the_gate_then_lets_through(options: dict[str, Any]) -> None:
    others = [{"name": f"task_{each}", "description": f"Do task {each}"} for each in range(20)]
    with Board([*others, (TIDE, lambda: "16:20"), WIND], k=1, **options) as board:
        decision = board.route_now("how strong is the wind?")
        assert board.execute_now(Call(name="tide"), decision).is_error

        found = board.search_now("high tide at the harbour")
        assert found.tools[0].name == "tide"
        decision = board.with_found(decision, found)
        assert "tide" in [tool.name for tool in decision.tools]
        assert board.execute_now(Call(name="tide"), decision).text == "16:20"


def test_a_search_finds_only_what_the_caller_may_use(options: dict[str, Any]) -> None:
    rules = ({"tools": "local/tide", "scope": "sea"},)
    with Board([TIDE, WIND], rules=rules, **options) as board:
        assert ToolId("local", "tide") not in board.search_now("high tide").ids
        assert ToolId("local", "tide") in board.search_now("high tide", scopes=frozenset({"sea"})).ids


def test_a_search_that_matches_nothing_says_so_to_a_model(options: dict[str, Any]) -> None:
    with Board([TIDE, WIND], **options) as board:
        answer = board.search_now("qwertz xyzzy").to_dict()

    assert answer["tools"] == []
    assert answer["why"]
    json.dumps(answer)


@pytest.mark.parametrize("limit", [-1, 0, 2.5, "3", True])
async def test_a_limit_of_a_search_that_is_no_number_of_tools_is_refused(options: dict[str, Any], limit: Any) -> None:
    async with Board([TIDE, WIND], **options) as board:
        with pytest.raises(ConfigError, match=f"limit is {limit!r}.*whole number of at least 1"):
            await board.search("high tide", limit=limit)
        assert len((await board.search("tide wind", limit=1)).tools) == 1


async def test_a_limit_of_a_search_can_be_a_number_of_numpy(options: dict[str, Any]) -> None:
    limit: Any = np.int64(1)
    async with Board([TIDE, WIND], **options) as board:
        assert len((await board.search("tide wind", limit=limit)).tools) == 1


async def test_statistics_count_what_was_executed(options: dict[str, Any]) -> None:
    def late() -> str:
        raise RuntimeError("late")

    async with Board([(TIDE, lambda: "16:20"), (WIND, late)], **options) as board:
        decision = await board.route("tide and wind")
        for name in ("tide", "tide", "wind"):
            await board.execute(Call(name=name), decision)
        known = await board.statistics()

    assert (known[ToolId("local", "tide")].calls, known[ToolId("local", "tide")].successes) == (2, 2)
    assert (known[ToolId("local", "wind")].calls, known[ToolId("local", "wind")].successes) == (1, 0)


@pytest.mark.requirement("library.parity")
async def test_a_call_beyond_a_spend_limit_is_not_made_and_the_model_is_told(options: dict[str, Any]) -> None:
    made: list[int] = []
    spend = {"prices": {"local/tide": 0.4}, "session": 1.0}
    async with Board([(TIDE, lambda: made.append(1)), WIND], spend=spend, **options) as board:
        decision = await board.route("the tide?", session="one")
        results = [await board.execute(Call(name="tide"), decision) for _ in range(3)]
        other = await board.route("the tide?", session="two")
        free = await board.execute(Call(name="tide"), other)

    assert [each.is_error for each in results] == [False, False, True]
    assert json.loads(results[-1].text)["error"] == "spend_limit_reached"
    assert not free.is_error
    assert len(made) == 3


@pytest.mark.requirement("library.parity")
def test_events_of_decisions_reach_a_sink_of_ones_own(options: dict[str, Any]) -> None:
    seen: list[Event] = []

    class Sink:
        def emit(self, event: Event) -> None:
            seen.append(event)

    with Board([TIDE], events=Sink(), **options) as board:
        board.route_now("a secret about the tide")

    assert [type(event).__name__ for event in seen] == ["RouteDecided"]
    assert "secret" not in repr(seen)


def test_servers_have_the_configured_limits(options: dict[str, Any], tmp_path: Path) -> None:
    tools = [{"name": f"tool_{each}", "description": "x", "inputSchema": {"type": "object"}} for each in range(10)]
    (tmp_path / "many.json").write_text(json.dumps({"title": "many", "instructions": "", "tools": tools}), "utf-8")
    config = {"mcpServers": {"many": {"command": sys.executable, "args": [LISTED, str(tmp_path / "many.json")]}}}
    with Board(config=config, list_limit=3, start_wait=30.0, **options) as board:
        assert len(board.catalog) == 3
