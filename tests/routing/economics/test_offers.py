"""What ROUTE answers over the toy example's board, and the loop of algorithm 1 around it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from pegboard import Catalog, Turn
from pegboard.model import Server, ServerName, ToolId
from pegboard.routing.economics import Execute, Offers, Route, Stop, Subtask, solve
from pegboard.routing_board import RoutingBoard
from pegboard.testing import FakeEncoder, fake_tool

EXAMPLE = Path(__file__).parents[3] / "examples" / "route_loop.py"


@pytest.mark.requirement("001.alg1")
def test_the_example_loop_routes_calls_fails_routes_again_and_stops(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a program that runs it: with the encoder of the package."""
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path))
    made = runpy.run_path(str(EXAMPLE))["main"]()

    assert made.answer == "It leaves at 08:15, platform 3."
    task, first, failure, second, result = made.context
    assert (task, failure, result) == ("When can I go to Oslo?", "error: no connection", "08:15, platform 3")
    assert [offer.tool.server for offer in first.tools] == ["ferry", "rail"]
    assert [offer.tool.server for offer in second.tools] == ["rail"]
    assert second.why == ("Server ferry failed repeatedly and is not used for a while.",)


def test_the_example_loop_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 40


@pytest.mark.requirement("001.alg1")
async def test_a_loop_hands_each_step_to_whoever_does_it_and_the_result_to_the_model() -> None:
    call = Execute(tool=ToolId("clock", "now"), arguments={})
    plan: list[Any] = [Route(subtask="read a clock"), call, Stop(answer="noon")]
    seen: list[Any] = []

    async def decide(context: tuple[Any, ...]) -> Any:
        seen.append(context)
        return plan.pop(0)

    async def route(subtask: str) -> str:
        return f"tools for: {subtask}"

    async def execute(step: Execute) -> str:
        return f"called {step.tool}"

    ended = await solve("what time is it?", decide=decide, route=route, execute=execute)

    assert (ended.answer, ended.steps) == ("noon", 2)
    assert seen[-1] == ended.context == ("what time is it?", "tools for: read a clock", "called clock/now")


async def test_a_loop_whose_model_never_stops_ends_after_so_many_steps() -> None:
    async def decide(_context: tuple[Any, ...]) -> Any:
        return Route(subtask="again")

    async def route(_subtask: str) -> Offers:
        return Offers()

    ended = await solve("q", decide=decide, route=route, execute=route, most=3)  # type: ignore[arg-type]

    assert (ended.answer, ended.steps) == (None, 3)


@pytest.mark.parametrize("profile", ["hybrid", "semantic", "ehrr"])
async def test_a_board_makes_offers_under_every_profile_and_none_for_what_says_nothing(
    board_of: Any, profile: str
) -> None:
    tools = [fake_tool(name, f"{name} a file") for name in ("open", "close", "read", "write")]
    board: RoutingBoard = board_of(Catalog.build([(Server(name=ServerName("fake")), tools)]), profile=profile)

    offers = await board.offers(Turn.ask(str(Subtask(text="read a file"))))
    assert len(offers.tools) == 3
    assert offers.tools[0].tool.name == "read"
    assert offers.tools[0].latency == 1.0

    assert (await board.offers("  ")).why == ("The subtask is empty.",)
    assert (await board_of(Catalog.build([]), profile=profile).offers("x")).why == ("There are no tools here.",)


async def test_a_board_says_so_where_no_encoder_answers(board_of: Any, encoder: FakeEncoder) -> None:
    board: RoutingBoard = board_of(Catalog.build([(Server(name=ServerName("fake")), [fake_tool("read")])]))
    encoder.broken = True
    assert (await board.offers("read")).why == ("Tools cannot be ranked now, because no encoder answers.",)
