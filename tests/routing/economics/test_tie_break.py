"""Under `hybrid`, tools of one job that are nearly as relevant change places where one costs far less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pegboard import Board, Catalog, Settings, ToolId, Turn
from pegboard.compose import build_routing, default_parts
from pegboard.model import Outcome, Scores, Server, ServerName
from pegboard.routing.economics import Economics, Knowledge, NearTies, PriceList
from pegboard.settings.economics import EconomicsSettings
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, fake_tool

TIME = "Get the current time in a time zone"


OTHERS = ("Create an issue", "Read a file", "Query a table", "Send a message", "Book a flight", "Draw a chart")


def servers(*names: str, others: Sequence[str] = ()) -> Catalog:
    clocks = [(Server(name=ServerName(name)), [fake_tool("get_current_time", TIME, server=name)]) for name in names]
    tools = [fake_tool(about.lower().replace(" ", "_"), about, server="others") for about in others]
    return Catalog.build([*clocks, (Server(name=ServerName("others")), tools)] if tools else clocks)


async def exchanged(clock: FakeClock, values: list[float], prices: dict[str, float], **given: Any) -> list[float]:
    """The values of the same tool on servers a, b, c afterwards."""
    options: dict[str, Any] = {"near_ties": 0.2, "prices": PriceList(patterns=prices)} | given
    ties = NearTies(servers("a", "b", "c"), Economics(knowledge=Knowledge(None, clock), **options))
    jobs = np.zeros(3, np.intp)
    scores = Scores(values=np.array(values, np.float32), scale="probability", jobs=jobs)
    valued = await ties.apply(scores, np.ones(3, np.bool_), Turn.ask("what time is it?"))
    assert valued.scores is not None
    assert valued.among.all()
    assert scores.values.tolist() == np.array(values, np.float32).tolist(), "what others may hold is not changed"
    return [round(float(value), 3) for value in valued.scores.values]


@pytest.mark.requirement("001.near-ties")
async def test_the_far_cheaper_of_two_that_are_nearly_as_likely_takes_the_place_of_the_other(clock: FakeClock) -> None:
    assert await exchanged(clock, [0.5, 0.45, 0.1], {"a/*": 10}) == [0.45, 0.5, 0.1]


@pytest.mark.requirement("001.near-ties")
@pytest.mark.parametrize(
    ("values", "prices", "given"),
    [
        ([0.5, 0.3, 0.1], {"a/*": 10}, {}),
        ([0.5, 0.45, 0.1], {"a/*": 1}, {}),
        ([0.5, 0.45, 0.1], {"b/*": 10, "c/*": 10}, {}),
        ([0.5, 0.45, 0.1], {"a/*": 10}, {"near_ties": 0.05}),
    ],
    ids=["less relevant", "not even twice as dear", "cheaper already", "a smaller share"],
)
async def test_else_they_stay(
    clock: FakeClock, values: list[float], prices: dict[str, float], given: dict[str, float]
) -> None:
    assert await exchanged(clock, values, prices, **given) == values


def board(clock: FakeClock, near_ties: float) -> Board:
    settings = Settings(economics=EconomicsSettings(near_ties=near_ties), k=1)
    parts = default_parts(settings, clock=clock, events=MemoryEvents(), embeddings=MemoryEmbeddings())
    return build_routing(settings, servers("clock-1", "clock-2", others=OTHERS), parts=parts)


@pytest.mark.requirement("001.near-ties")
@pytest.mark.parametrize(("near_ties", "moved"), [(0.5, True), (0.0, False)])
async def test_a_server_that_fails_gives_its_place_to_one_that_does_the_same(
    clock: FakeClock, near_ties: float, moved: bool
) -> None:
    now = board(clock, near_ties)
    [before] = (await now.route("what time is it in Lima?")).active

    for _ in range(3):
        now.observe(Outcome(tool=before, success=False, latency_ms=5_000, failure="server"))

    [after] = (await now.route("what time is it in Lima?")).active
    assert (after != before) is moved
    assert {before, after} <= {ToolId(name, "get_current_time") for name in ("clock-1", "clock-2")}
