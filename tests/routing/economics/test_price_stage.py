"""The two layers as a profile of the pipeline: what a turn is given, what it learns from calls, and what it forgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pegboard import Catalog, Tool, ToolId, Turn
from pegboard.errors import StoreError
from pegboard.model import Outcome, Server, ServerName, ToolStatistics
from pegboard.protocols import Encoder, Filter
from pegboard.routing import PROFILES
from pegboard.routing.economics import Economics, Knowledge, Parameters, PriceList
from pegboard.routing.economics.estimates import EstimateArrays
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEvents, MemoryStatistics
from pegboard.testing import FakeClock, FakeEncoder, fake_tool

GivenVectors = Callable[[dict[str, Sequence[float]]], Encoder]


class Recorded:
    """Statistics as a store would read them."""

    def __init__(self, known: Mapping[ToolId, ToolStatistics]) -> None:
        self.known = dict(known)
        self.reads = 0
        self.down = False

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        raise NotImplementedError

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        self.reads += 1
        if self.down:
            raise StoreError("The store is down.", remedy="Wait.")
        return dict(self.known)


def at(cosine: float) -> tuple[float, float]:
    """A direction with this cosine to (1, 0)."""
    return cosine, float(np.sqrt(1 - cosine * cosine))


def board_of(
    catalog: Catalog, encoder: Encoder, clock: FakeClock, *, always: Sequence[str] = (), **given: Any
) -> RoutingBoard:
    given.setdefault("knowledge", Knowledge(None, clock))
    profile = PROFILES["ehrr"].with_overrides(k=given.pop("k", None))
    return RoutingBoard(
        catalog, profile, documents=encoder, queries=encoder, events=MemoryEvents(), clock=clock,
        always_available=always, economics=Economics(**given),
    )  # fmt: skip


def names(tools: Sequence[ToolId]) -> list[str]:
    return [tool.name for tool in tools]


SEED = {
    ToolId("s1", ""): ToolStatistics(calls=9, success=0.709, variance=0, failure=0.05, latency=0.9),
    ToolId("s2", ""): ToolStatistics(calls=9, success=0.45, variance=0, failure=0.20, latency=0.6),
    ToolId("s1", "t11"): ToolStatistics(calls=3, success=0.7, latency=1.0),
    ToolId("s1", "t12"): ToolStatistics(calls=3, success=0.9, latency=0.5),
    ToolId("s1", "t13"): ToolStatistics(calls=3, success=0.8, latency=0.8),
}
PRICES = {"t11": 0.030, "t12": 0.002, "t13": 0.020}


def toy(given_vectors: GivenVectors, clock: FakeClock, **given: Any) -> RoutingBoard:
    encoder = given_vectors(
        {"query": (1, 0), "s1": at(0.75), "s2": at(0.85)}
        | {"t11": at(0.90), "t12": at(0.75), "t13": at(0.85), "t21": at(0.99)}
    )
    servers = [(Server(name=ServerName("s1")), ["t11", "t12", "t13"]), (Server(name=ServerName("s2")), ["t21"])]
    catalog = Catalog.build(
        [(server, [fake_tool(name, server=server.name) for name in tools]) for server, tools in servers]
    )
    usual: dict[str, Any] = {
        "knowledge": Knowledge(Recorded(SEED), clock, half_life=0),
        "prices": PriceList(patterns=PRICES),
        "asks": {"s1": 0.010, "s2": 0.050},
        "connections": lambda: {"s1": 0.3, "s2": 0.6},
    }
    return board_of(catalog, encoder, clock, **(usual | given))


@pytest.mark.requirement("001.toy-example", "001.alg2")
async def test_the_profile_gives_the_tools_of_the_seeds_example(given_vectors: GivenVectors, clock: FakeClock) -> None:
    board = toy(given_vectors, clock)

    decision = await board.route("query")

    assert decision.scale == "utility"
    assert [(each.tool.name, f"{each.score:.3f}") for each in decision.candidates] == [
        ("t12", "0.516"),
        ("t13", "0.483"),
    ]
    assert names(decision.active) == ["t12", "t13"]
    priced = await board.priced("query")
    assert priced is not None
    assert [f"{each:.3f}" for each in priced.servers.utility] == ["0.572", "0.517"]
    assert [priced.reason(place) for place in range(4)] == ["too_expensive", "kept", "kept", "server_declined"]


async def test_a_server_beyond_the_top_k_is_offered_nothing(given_vectors: GivenVectors, clock: FakeClock) -> None:
    asked: list[str] = []

    def accept(server: str, posted: float) -> bool:
        asked.append(server)
        return True

    board = toy(given_vectors, clock, parameters=Parameters(servers=1, tools=None), accept=accept)
    priced = await board.priced("query")

    assert asked == ["s1"]
    assert priced is not None
    assert priced.reason(3) == "server_not_shortlisted"


@pytest.mark.requirement("001.asks")
async def test_a_servers_own_bit_outweighs_what_it_is_thought_to_ask(
    given_vectors: GivenVectors, clock: FakeClock
) -> None:
    board = toy(given_vectors, clock, accept=lambda name, _: {"s1": False}.get(name))

    priced = await board.priced("query")

    assert priced is not None
    assert priced.accepted.tolist() == [False, False]
    assert priced.ask_sources == ("callback", "config")
    assert (await board.route("query")).active == ()


@pytest.mark.requirement("001.asks")
async def test_an_ask_is_from_the_tools_meta_then_the_configuration_then_the_prices_of_its_tools(
    clock: FakeClock, encoder: FakeEncoder
) -> None:
    def stated(name: str, server: str, **meta: object) -> Tool:
        tool = fake_tool(name, "does things", server=server)
        return replace(tool, definition={**tool.definition, "_meta": meta})

    groups = {
        "says": [stated("a", "says", **{"acme.example/ask_usd": 0.004})],
        "configured": [stated("b", "configured")],
        "seen": [stated("c", "seen", **{"pegboard/price_usd": 0.01}), stated("d", "seen")],
        "new": [stated(name, "new", **{"pegboard/price_usd": usd}) for name, usd in (("e", 5), ("f", 0.01), ("g", 0))],
    }
    catalog = Catalog.build([(Server(name=ServerName(name)), tools) for name, tools in groups.items()])
    knowledge = Knowledge(None, clock)
    for name in "ccd":
        knowledge.observe(Outcome(tool=ToolId("seen", name), success=True, latency_ms=10))
    board = board_of(catalog, encoder, clock, asks={"says": 0.9, "con*": 0.002}, knowledge=knowledge)

    priced = await board.priced("does things")

    assert priced is not None
    np.testing.assert_allclose(priced.asks, [0.004, 0.002, 2 * 0.01 / 3, 0.01])
    assert priced.ask_sources == ("_meta", "config", "observed", "observed")
    assert [price.source for price in priced.prices[:4]] == ["free", "free", "_meta", "free"]


@pytest.mark.requirement("001.prices")
def test_a_price_is_from_the_configuration_then_meta_then_a_tier_and_else_free() -> None:
    def tool(description: str = "", **meta: object) -> Tool:
        made = fake_tool("t", description)
        return replace(made, definition={**made.definition, "_meta": meta})

    both = PriceList(patterns={"fake/x": 9.0, "fa*/t": 0.5, "*": 1.0}, tiers=True)
    assert both.of(tool(price_usd=3)) == (0.5, "config")
    tiers = PriceList(tiers=True)
    assert tiers.of(tool(**{"zed.example/price_usd": 2, "pegboard/price_usd": 3})) == (3.0, "_meta")
    assert tiers.of(tool("Geocode an address")) == (0.0225, "tier")
    assert tiers.of(tool("Run some code")) == (0.00125, "tier")
    assert PriceList().of(tool("Geocode an address")) == (0.0, "free")


@pytest.mark.requirement("001.prices")
@pytest.mark.parametrize("said", ["0.5", True, -1, 10**400, -(10**400), float("nan"), float("inf"), None, [1]])
def test_a_stated_price_that_is_none_is_no_price(said: object) -> None:
    tool = fake_tool("t")

    assert (
        PriceList().of(replace(tool, definition={"name": "t", "_meta": {"pegboard/price_usd": said}})).source == "free"
    )
    assert PriceList().of(replace(tool, definition={"name": "t", "_meta": "cheap"})).source == "free"


TWINS = ["first", "second"]


def twins(clock: FakeClock, knowledge: Knowledge, given_vectors: GivenVectors) -> RoutingBoard:
    """Two servers that do the same, of which the first says it better; the best tool of the better server is taken."""
    encoder = given_vectors({"query": (1, 0), "now": at(0.8), "first": at(0.85), "second": at(0.75)})
    catalog = Catalog.build([(Server(name=ServerName(name)), [fake_tool("now", server=name)]) for name in TWINS])
    return board_of(catalog, encoder, clock, knowledge=knowledge, parameters=Parameters(servers=1), k=1)


async def chosen(board: RoutingBoard) -> str:
    (tool,) = (await board.route("query")).active
    return tool.server


def call(server: str, *, failure: Any = None, ms: float = 100.0) -> Outcome:
    return Outcome(tool=ToolId(server, "now"), success=failure is None, latency_ms=ms, failure=failure)


@pytest.mark.requirement("001.fading")
@pytest.mark.parametrize("bad", [{"failure": "server"}, {"failure": "tool"}, {"ms": 30_000.0}])
async def test_a_server_that_gets_worse_loses_the_traffic_within_ten_calls_and_regains_it_after_it_heals(
    clock: FakeClock, given_vectors: GivenVectors, bad: dict[str, Any]
) -> None:
    knowledge = Knowledge(None, clock)
    board = twins(clock, knowledge, given_vectors)

    async def calls(heals: float) -> list[str]:
        """Who gets the next sixty calls, one each minute; the first server answers badly until it heals."""
        taken = []
        for _ in range(60):
            taken.append(await chosen(board))
            ill = taken[-1] == "first" and clock.now < heals
            knowledge.observe(call(taken[-1], **(bad if ill else {})))
            clock.advance(60)
        return taken

    assert set(await calls(heals=0)) == {"first"}
    ill = await calls(heals=float("inf"))
    assert "second" in ill[:11]
    first_switch = ill.index("second")
    assert ill[first_switch:].count("first") < 15, "it is tried, and no more than that"
    assert ill[first_switch:].count("first") > 0, "it is not lost for ever"
    assert (await calls(heals=0))[-20:] == ["first"] * 20


@pytest.mark.requirement("001.fading")
@pytest.mark.parametrize(("probe", "expected"), [(None, 0.9), ("server", 0.25), ("tool", 0.25)])
async def test_a_probe_that_succeeds_is_believed_and_one_that_fails_brings_back_what_was_known(
    given_vectors: GivenVectors, probe: Any, expected: float
) -> None:
    time = FakeClock(0.0)
    knowledge = Knowledge(None, time)
    for _ in range(10):
        knowledge.observe(call("first", failure="server"))
    time.advance(3_600)
    knowledge.observe(call("first", failure=probe))

    books = EstimateArrays(twins(time, knowledge, given_vectors).catalog, Economics(knowledge=knowledge))
    r = books.estimates()[0].success[0]
    assert r == pytest.approx(expected, abs=0.12)


@pytest.mark.requirement("001.fading")
async def test_with_no_half_life_nothing_is_forgotten_as_in_the_seed(
    clock: FakeClock, given_vectors: GivenVectors
) -> None:
    knowledge = Knowledge(None, clock, half_life=0)
    board = twins(clock, knowledge, given_vectors)
    preferred = await chosen(board)
    for _ in range(10):
        knowledge.observe(call(preferred, failure="server"))

    clock.advance(1e9)

    assert await chosen(board) != preferred


async def test_the_callers_own_mistakes_move_nothing(clock: FakeClock, given_vectors: GivenVectors) -> None:
    knowledge = Knowledge(None, clock)
    board = twins(clock, knowledge, given_vectors)
    before = (await board.route("query")).candidates
    for server in TWINS * 20:
        knowledge.observe(call(server, failure="caller", ms=60_000))

    assert (await board.route("query")).candidates == before


async def test_what_the_store_knows_is_read_again_now_and_then_and_kept_while_it_is_down(
    clock: FakeClock, given_vectors: GivenVectors
) -> None:
    store = Recorded({ToolId("first", ""): ToolStatistics(calls=5, success=0.05)})
    board = twins(clock, Knowledge(store, clock, fresh=5.0), given_vectors)
    assert await chosen(board) == "second"
    await chosen(board)
    assert store.reads == 1

    clock.advance(5)
    store.down = True
    assert await chosen(board) == "second"
    clock.advance(5)
    store.down = False
    store.known = {ToolId("first", ""): ToolStatistics(calls=50, success=0.99, variance=0.01)}

    assert await chosen(board) == "first"
    assert store.reads == 3


async def test_an_infinite_latency_in_the_store_is_left_there(clock: FakeClock, given_vectors: GivenVectors) -> None:
    first = ToolId("first", "")
    store = Recorded({first: ToolStatistics(calls=5, latency=math.inf)})
    knowledge = Knowledge(store, clock, fresh=5.0)
    board = twins(clock, knowledge, given_vectors)
    assert await chosen(board) == "first"
    assert list(knowledge.changed_since(0)) == []

    store.known = {first: ToolStatistics(calls=6, success=0.05)}
    clock.advance(5)

    assert await chosen(board) == "second"


async def test_own_calls_that_the_store_has_not_got_yet_are_not_undone_by_reading_it(
    clock: FakeClock, given_vectors: GivenVectors
) -> None:
    store = MemoryStatistics()
    await store.observe([replace(call("first"), tool=ToolId("first", ""))])
    knowledge = Knowledge(store, clock)
    board = twins(clock, knowledge, given_vectors)
    preferred = await chosen(board)
    for _ in range(10):
        knowledge.observe(call(preferred, failure="server"))

    clock.advance(6)

    assert await chosen(board) != preferred


async def test_forbidden_tools_take_no_place_and_always_available_ones_need_no_price(
    given_vectors: GivenVectors, clock: FakeClock
) -> None:
    board = toy(given_vectors, clock)
    without = await board.route("query", Filter(excluded=frozenset({ToolId("s1", "t12")})))
    assert names(without.active) == ["t13"]

    catalog, encoder = board.catalog, given_vectors({"query": (1, 0)} | {name: at(0.5) for name in
        ["s1", "s2", "t11", "t12", "t13", "t21"]})  # fmt: skip
    dear = board_of(catalog, encoder, clock, always=["t11"], prices=PriceList(patterns={"*": 5.0}))
    assert names((await dear.route("query")).active) == ["t11"]


@pytest.mark.requirement("001.limits")
async def test_a_turn_may_say_what_a_call_may_cost_and_how_long_it_may_take(
    given_vectors: GivenVectors, clock: FakeClock
) -> None:
    board = toy(given_vectors, clock)

    async def given(**limits: float) -> tuple[list[str], list[str]]:
        turn = Turn.ask("query", **limits)
        priced = await board.priced(turn)
        assert priced is not None
        return names((await board.route(turn)).active), [priced.reason(place) for place in range(3)]

    assert await given() == (["t12", "t13"], ["too_expensive", "kept", "kept"])
    assert await given(max_price=0.015) == (["t12"], ["too_expensive", "kept", "too_expensive"])
    assert await given(deadline=0.9) == (["t12"], ["too_expensive", "kept", "too_slow"])
    assert await given(max_price=0.005) == ([], ["server_declined"] * 3)


@pytest.mark.parametrize("half_life", [0, 600])
async def test_the_terms_of_a_decision_stay_as_they_were_when_it_was_made(
    clock: FakeClock, given_vectors: GivenVectors, half_life: float
) -> None:
    knowledge = Knowledge(None, clock, half_life=half_life)
    board = twins(clock, knowledge, given_vectors)
    knowledge.observe(call("first"))
    priced = await board.priced("query")
    assert priced is not None
    before = priced.estimates[0].success.tolist()

    knowledge.observe(call("first", failure="server"))
    await board.priced("query")

    assert priced.estimates[0].success.tolist() == before


async def test_a_turn_without_a_text_lets_every_tool_pass(given_vectors: GivenVectors, clock: FakeClock) -> None:
    board = toy(given_vectors, clock)

    assert len((await board.route(Turn(messages=()))).active) == 4
    assert await board.priced(Turn(messages=())) is None
