from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from pegboard import Call, Catalog, ToolId, Turn
from pegboard.board_search import found_tools
from pegboard.errors import ArgumentsInvalid, EncoderError, ToolNotAvailable
from pegboard.events import CallRejected, RouteDecided
from pegboard.model import AgentState, Floats, Server, ServerName
from pegboard.protocols import Filter
from pegboard.retrieval.query import edges
from pegboard.routing_board import RoutingBoard, route_now
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeEncoder, fake_tool

BoardOf = Callable[..., RoutingBoard]
CatalogOf = Callable[..., Catalog]

ASK = "Create an issue about the broken gate in project Atlas"
POST = Server(name=ServerName("post"), description="Letters")


async def test_a_text_is_routed_like_a_turn_of_one_user_message(town: Catalog, board_of: BoardOf) -> None:
    board = board_of(town)

    assert (await board.route(ASK)).active == (await board.route(Turn.ask(ASK))).active


async def test_ranking_shows_every_permitted_tool_with_no_gate(town: Catalog, board_of: BoardOf) -> None:
    board = board_of(town, profile="attention", k=1, rules=[{"tools": "weather/*", "scope": "met"}])

    ranked = await board.rank(ASK)

    assert len(ranked) == len(town) - 2
    assert ranked[0].tool.name == "create_issue"
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)


@pytest.mark.parametrize("profile", ["hybrid", "keyword", "semantic"])
async def test_of_a_long_search_only_its_start_and_its_end_are_read(
    town: Catalog, board_of: BoardOf, profile: str
) -> None:
    board = board_of(town, profile=profile)
    searched = f"{ASK} {'and a log ' * 10_000}"

    found = await found_tools(board, await board.search_index(), Turn.ask, searched)

    assert found.query == edges(searched)
    assert (found.tools or found.nearest)[0].tool.name == "create_issue"


async def test_a_search_is_corrected_to_words_of_the_tools_that_its_caller_may_see(board_of: BoardOf) -> None:
    def servers(*names: str) -> Catalog:
        tools = {"pay": "list_severances", "code": "list_branches"}
        return Catalog.build((Server(name=ServerName(name)), [fake_tool(tools[name], server=name)]) for name in names)

    board = board_of(servers("code", "pay"), rules=[{"tools": "pay/*", "scope": "staff"}])
    without = board_of(servers("code"))

    async def corrected(asked: RoutingBoard, query: str, *scopes: str) -> str:
        found = await found_tools(
            asked, await asked.search_index(), lambda text: replace(Turn.ask(text), scopes=frozenset(scopes)), query
        )
        return found.query

    for query in ("list sevrances", "list severanches", "list branchs", "severances of branchs"):
        assert await corrected(board, query) == await corrected(without, query)
    assert await corrected(board, "list sevrances", "staff") == "list severances"
    assert await corrected(board, "list sevrances") == "list sevrances"


@pytest.mark.requirement("002.always-available")
async def test_always_available_tools_are_active_at_every_turn_and_take_no_place(
    town: Catalog, board_of: BoardOf
) -> None:
    board = board_of(town, profile="attention", k=1, always_available=("get_tides", "library/*"))

    decision = await board.route(ASK)

    assert [tool.name for tool in decision.active] == ["renew_loan", "reserve_book", "get_tides", "create_issue"]


@pytest.mark.requirement("M2", "002.always-available")
async def test_always_available_is_not_for_those_without_the_right(town: Catalog, board_of: BoardOf) -> None:
    board = board_of(town, always_available=("get_tides",), rules=[{"tools": "weather/*", "scope": "met"}])

    decision = await board.route(ASK)

    assert ToolId("weather", "get_tides") not in {*decision.active, *decision.reachable}


@pytest.mark.requirement("M2")
async def test_what_is_allowed_and_summarized_follows_the_callers_rights_and_state(
    town: Catalog, board_of: BoardOf
) -> None:
    board = board_of(
        town,
        rules=[
            {"tools": "tickets/*", "scope": "staff"},
            {"tools": "weather/*", "requires": ["milestone_reached:plan"]},
        ],
    )
    guest = Turn.ask("x")
    staff = Turn.ask("x", scopes=frozenset({"staff"}), state=AgentState(milestones=frozenset({"plan"})))

    assert {tool.server for tool in board.allowed(guest)} == {"library", "workshop"}
    assert board.allowed(staff) == {tool.id for tool in town.tools}
    assert "create_issue" not in board.pool(guest)
    assert "create_issue" in board.pool(staff)


async def test_a_filter_narrows_one_route(town: Catalog, board_of: BoardOf) -> None:
    decision = await board_of(town).route(ASK, Filter(servers=frozenset({"weather"})))

    assert {tool.server for tool in decision.active} == {"weather"}


async def test_a_call_of_an_active_tool_with_fitting_arguments_is_let_through_without_an_event(
    town: Catalog, board_of: BoardOf, events: MemoryEvents
) -> None:
    board = board_of(town, k=2)
    decision = await board.route(ASK)

    call = Call(name="create_issue", arguments={"project": "Atlas", "title": "Gate"})

    assert board.check(call, decision) == ToolId("tickets", "create_issue")
    assert events.of(CallRejected) == []


@pytest.mark.requirement("M30", "000.hallucination-gate")
async def test_a_refused_call_is_an_event_with_the_reason_and_without_the_arguments(
    town: Catalog, board_of: BoardOf, events: MemoryEvents
) -> None:
    board = board_of(town, profile="attention", k=2)
    decision = await board.route(ASK)

    with pytest.raises(ToolNotAvailable):
        board.check(Call(name="renew_loan", arguments={"loan": "hush-hush"}), decision)
    with pytest.raises(ArgumentsInvalid):
        board.check(Call(name="create_issue", arguments={"project": 7, "title": "hush-hush"}), decision)

    assert [event.as_dict() for event in events.of(CallRejected)] == [
        {"event": "CallRejected", "at": 1_000.0, "tool": "renew_loan", "reason": "tool_not_available"},
        {"event": "CallRejected", "at": 1_000.0, "tool": "create_issue", "reason": "arguments_invalid"},
    ]


@pytest.mark.requirement("M4")
async def test_a_storm_of_reconnects_embeds_nothing_twice(
    town: Catalog, board_of: BoardOf, encoder: FakeEncoder
) -> None:
    board = board_of(town)
    await board.route(ASK)
    before = len(encoder.encoded)

    for _ in range(20):
        weather, tools = town.servers["weather"], town.of_server("weather")
        board.replace_catalog(board.catalog.without_server("weather"))
        await board.route(ASK)
        board.replace_catalog(board.catalog.with_server(weather, tools))
        await board.route(ASK)

    assert len(encoder.encoded) == before
    assert len(set(encoder.encoded)) == before


@pytest.mark.requirement("M4", "M18")
async def test_a_changed_tool_is_embedded_and_nothing_else(
    town: Catalog, board_of: BoardOf, encoder: FakeEncoder
) -> None:
    board = board_of(town)
    await board.warm()
    encoder.encoded.clear()
    forecast, tides = town.of_server("weather")

    board.replace_catalog(
        town.with_server(town.servers["weather"], [forecast, replace(tides, description="Sea level.")])
    )
    await board.warm()

    assert encoder.encoded == ["weather get tides: Sea level.", "weather get tides: Sea level. harbour"]


@pytest.mark.requirement("P17", "M5")
async def test_a_changed_definition_is_what_the_next_turn_gets(town: Catalog, board_of: BoardOf) -> None:
    board = board_of(town, always_available=("get_tides",))
    await board.route(ASK)
    forecast, tides = town.of_server("weather")
    changed = replace(tides, definition={"name": "get_tides", "inputSchema": {"type": "object", "required": ["port"]}})

    board.replace_catalog(town.with_server(town.servers["weather"], [forecast, changed]))

    phase2 = (await board.route(ASK)).phase2
    assert changed.definition in phase2
    assert tides.definition not in phase2


class GatedEncoder(FakeEncoder):
    """Lets queries wait until the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.reached = asyncio.Event(), asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        if any("Atlas" in text for text in texts):
            self.reached.set()
            await self.gate.wait()
        return await super().encode(texts)


async def test_a_turn_under_way_sees_one_snapshot_from_beginning_to_end(town: Catalog, board_of: BoardOf) -> None:
    encoder = GatedEncoder()
    board = board_of(town, parts={"encoder": encoder})
    under_way = asyncio.create_task(board.route(ASK))
    await encoder.reached.wait()

    board.replace_catalog(Catalog.build([(POST, [fake_tool("send", server="post")])]))
    other = await board.route("send a letter")
    encoder.gate.set()

    assert ToolId("tickets", "create_issue") in (await under_way).active
    assert other.reachable == {ToolId("post", "send")}


@pytest.mark.requirement("P25")
async def test_turns_that_arrive_together_do_not_change_each_others_tools(town: Catalog, board_of: BoardOf) -> None:
    turns = [
        Turn.ask(f"{text} {number}", scopes=frozenset({"staff"} if number % 2 else ()))
        for number, text in enumerate([ASK, "When is high water?", "Book a repair", "Renew my loan"] * 6)
    ]
    options = {"k": 2, "rules": [{"tools": "tickets/*", "scope": "staff"}]}
    one_by_one = board_of(town, **options)
    expected = [(await one_by_one.route(turn)).active for turn in turns]

    together = board_of(town, **options)
    decisions = await asyncio.gather(*(together.route(turn) for turn in turns))

    assert [decision.active for decision in decisions] == expected


@pytest.mark.requirement("P25")
async def test_one_query_that_hangs_stalls_no_other_turn(town: Catalog, board_of: BoardOf) -> None:
    encoder = GatedEncoder()
    board = board_of(town, parts={"encoder": encoder})
    hangs = asyncio.create_task(board.route(ASK))
    await encoder.reached.wait()

    quick = await board.route("When is high water?")

    assert ToolId("weather", "get_tides") in quick.active
    assert not hangs.done()
    encoder.gate.set()
    await hangs


async def test_an_impatient_board_answers_before_its_tools_are_embedded(
    town: Catalog, board_of: BoardOf, encoder: FakeEncoder
) -> None:
    board = board_of(town, patient=False, k=2)

    early = await board.route(ASK)

    assert ToolId("tickets", "create_issue") in early.active
    assert encoder.encoded == []


async def test_warming_tells_its_progress_and_leaves_nothing_but_the_query_to_encode(
    town: Catalog, board_of: BoardOf, encoder: FakeEncoder
) -> None:
    board, told = board_of(town), list[tuple[int, int]]()

    await board.warm(lambda done, total: told.append((done, total)))
    encoder.encoded.clear()
    await board.route(ASK)

    assert told[-1] == (len(town), len(town))
    assert encoder.encoded == [ASK]


async def test_warming_says_so_when_the_encoder_cannot_be_used(town: Catalog, board_of: BoardOf) -> None:
    with pytest.raises(EncoderError):
        await board_of(town, parts={"encoder": FakeEncoder(broken=True)}).warm()


def test_a_board_can_be_asked_where_there_is_no_event_loop(
    town: Catalog, board_of: BoardOf, events: MemoryEvents
) -> None:
    board = board_of(town, k=2)

    decisions = [route_now(board, ASK) for _ in range(3)]

    assert all(ToolId("tickets", "create_issue") in decision.active for decision in decisions)
    assert len(events.of(RouteDecided)) == 3
