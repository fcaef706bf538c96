from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Call, Catalog, Tool, ToolId, Turn
from pegboard.errors import ToolNotAvailable
from pegboard.events import RouteDecided
from pegboard.model import AgentState, Floats, Message, Part, Role
from pegboard.protocols import Encoder
from pegboard.routing import PROFILES, Rule, is_authenticated
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder, fake_tool

BoardOf = Callable[..., RoutingBoard]
CatalogOf = Callable[..., Catalog]
GivenVectors = Callable[[dict[str, Sequence[float]]], Encoder]

PROFILE_NAMES = list(PROFILES)


def summarized(name: str, *, schema: dict[str, object] | None = None) -> Tool:
    """A tool whose summary is its name, so that its vector can be given by hand."""
    return replace(fake_tool(name, schema=schema, server="s"), summary=name)


def names(tools: Sequence[ToolId]) -> list[str]:
    return [tool.name for tool in tools]


def said(*messages: tuple[Role, str], **fields: object) -> Turn:
    return Turn(messages=tuple(Message(role=role, parts=(Part(text=text),)) for role, text in messages), **fields)  # type: ignore[arg-type]


def attention(catalog: Catalog, encoder: Encoder, *, rules: Sequence[Rule] = (), **overrides: object) -> RoutingBoard:
    return RoutingBoard(
        catalog,
        PROFILES["attention"].with_overrides(**overrides),
        documents=encoder,
        queries=encoder,
        events=MemoryEvents(),
        clock=FakeClock(),
        rules=rules,
    )


# The vectors below have length 1, or a length that divides out, so that each cosine with (1, 0) is its first number.
BY_HAND: dict[str, Sequence[float]] = {
    "query": (1, 0),
    "just_below": (0.27, 0.9628603),
    "exactly": (0.28, 0.96),
    "locked": (8, 6),
    "best": (3, 4),
    "opposite": (-5, 0),
    "second": (0.5, 0.8660254),
}
TOOLS = ["just_below", "exactly", "locked", "best", "opposite", "second"]


@pytest.mark.requirement("000.eq4", "000.eq5")
async def test_overlap_is_the_cosine_of_query_and_summary(catalog_of: CatalogOf, given_vectors: GivenVectors) -> None:
    board = attention(catalog_of(*map(summarized, TOOLS)), given_vectors(BY_HAND))

    ranked = await board.rank("query")

    assert names([each.tool for each in ranked]) == ["locked", "best", "second", "exactly", "just_below", "opposite"]
    np.testing.assert_allclose([each.score for each in ranked], [0.8, 0.6, 0.5, 0.28, 0.27, -1], atol=1e-6)


@pytest.mark.requirement("000.eq6", "000.eq7")
async def test_the_active_tools_are_the_top_k_of_those_at_or_above_the_threshold(
    catalog_of: CatalogOf, given_vectors: GivenVectors
) -> None:
    catalog = catalog_of(*map(summarized, TOOLS))

    all_gated = await attention(catalog, given_vectors(BY_HAND)).route("query")
    best_two = await attention(catalog, given_vectors(BY_HAND), k=2).route("query")

    assert names(all_gated.active) == ["exactly", "locked", "best", "second"]
    assert names(best_two.active) == ["locked", "best"]


@pytest.mark.requirement("000.alg1", "000.eq6")
async def test_a_tool_whose_precondition_fails_takes_no_place_among_the_k(
    catalog_of: CatalogOf, given_vectors: GivenVectors
) -> None:
    rule = Rule(pattern="s/locked", precondition=is_authenticated("key"))
    board = attention(catalog_of(*map(summarized, TOOLS)), given_vectors(BY_HAND), rules=[rule], k=2)

    locked_out = await board.route("query")
    let_in = await board.route(Turn.ask("query", state=AgentState(auth=frozenset({"key"}))))

    assert names(locked_out.active) == ["best", "second"]
    assert names(locked_out.gated_out_by_state) == ["locked"]
    assert ToolId("s", "locked") not in locked_out.reachable
    assert names(let_in.active) == ["locked", "best"]
    assert let_in.gated_out_by_state == ()


@pytest.mark.requirement("000.alg1")
async def test_one_pass_of_algorithm_1_gives_summaries_schemas_and_a_gate(
    catalog_of: CatalogOf, given_vectors: GivenVectors
) -> None:
    schemas = {name: {"type": "object", "properties": {name: {"type": "string"}}} for name in TOOLS}
    catalog = catalog_of(*(summarized(name, schema=schemas[name]) for name in TOOLS))
    board = attention(catalog, given_vectors(BY_HAND), k=2)

    decision = await board.route("query")

    assert decision.phase1 == "[s]\n" + "\n".join(TOOLS)
    assert [each["inputSchema"] for each in decision.phase2] == [schemas["locked"], schemas["best"]]
    assert decision.phase2_tokens == catalog.token_counts[2] + catalog.token_counts[3]
    assert board.check(Call(name="best"), decision) == ToolId("s", "best")
    with pytest.raises(ToolNotAvailable) as caught:
        board.check(Call(name="second"), decision)
    assert caught.value.payload()["error"] == "tool_not_available"
    assert caught.value.payload()["available"] == ["locked", "best"]


def as_the_seed_writes_it(query: Floats, vectors: Floats, holds: list[bool], threshold: float, k: int) -> list[int]:
    """Algorithm 1, lines 1 to 4, one tool at a time."""
    scores = [float(query @ vector / (np.linalg.norm(query) * np.linalg.norm(vector))) for vector in vectors]
    candidates = [i for i in range(len(vectors)) if scores[i] >= threshold and holds[i]]
    return sorted(sorted(candidates, key=lambda i: -scores[i])[:k])


@pytest.mark.requirement("000.alg1")
@given(
    seed=st.integers(0, 10_000),
    holds=st.lists(st.booleans(), min_size=1, max_size=12),
    threshold=st.sampled_from([0.1, 0.28, 0.5]),
    k=st.integers(1, 12),
)
async def test_every_route_is_what_the_seeds_algorithm_gives(
    catalog_of: CatalogOf, given_vectors: GivenVectors, seed: int, holds: list[bool], threshold: float, k: int
) -> None:
    drawn = np.random.default_rng(seed).normal(size=(len(holds) + 1, 3)).astype(np.float32)
    tools = [f"tool{number}" for number in range(len(holds))]
    encoder = given_vectors(dict(zip([*tools, "query"], drawn.tolist(), strict=True)))
    rules = [
        Rule(pattern=f"s/{name}", precondition=lambda _state: False)
        for name, ok in zip(tools, holds, strict=True)
        if not ok
    ]

    board = attention(catalog_of(*map(summarized, tools)), encoder, rules=rules, threshold=threshold, k=k)

    expected = as_the_seed_writes_it(drawn[-1], drawn[:-1], holds, threshold, k)
    assert names((await board.route("query")).active) == [tools[place] for place in expected]


@pytest.mark.requirement("003.rank")
async def test_the_semantic_filter_keeps_the_five_best_whatever_they_score(
    catalog_of: CatalogOf, given_vectors: GivenVectors, board_of: BoardOf
) -> None:
    vectors = {f"tool{number}": (-1.0, number / 10) for number in range(8)}
    board = board_of(
        catalog_of(*map(summarized, vectors)),
        profile="semantic",
        parts={"encoder": given_vectors(vectors | {"query": (1, 0)})},
    )

    decision = await board.route("query")

    assert names(decision.active) == ["tool3", "tool4", "tool5", "tool6", "tool7"]


@pytest.mark.requirement("003.threshold")
async def test_the_semantic_filter_keeps_all_at_or_above_its_threshold(
    catalog_of: CatalogOf, given_vectors: GivenVectors, board_of: BoardOf
) -> None:
    cosines = [0.69, 0.7, 0.71, 0.75, 0.8, 0.85, 0.9, 0.95]
    vectors = {f"tool{place}": (cosine, (1 - cosine**2) ** 0.5) for place, cosine in enumerate(cosines)}
    board = board_of(
        catalog_of(*map(summarized, vectors)),
        profile="semantic",
        threshold=0.7,
        parts={"encoder": given_vectors(vectors | {"query": (1, 0)})},
    )

    decision = await board.route("query")

    assert names(decision.active) == [f"tool{place}" for place in range(1, 8)]


@pytest.mark.requirement("002.top20")
async def test_the_keyword_search_gives_at_most_twenty_and_none_that_does_not_match(
    catalog_of: CatalogOf, board_of: BoardOf
) -> None:
    tools = [fake_tool(f"export_{number}") for number in range(30)] + [fake_tool("unrelated", server="other")]
    board = board_of(catalog_of(*tools), profile="keyword")

    assert len((await board.route("export")).active) == 20
    assert (await board.route("zebra")).active == ()


@pytest.mark.requirement("002.category")
async def test_a_category_can_be_found_whole(town: Catalog, board_of: BoardOf) -> None:
    found = await board_of(town, profile="keyword").route("stock weather")

    assert {"get_forecast", "get_tides", "find_part"} <= set(names(found.active))


ASK = "Create an issue about the broken gate in project Atlas"


@pytest.mark.requirement("P1")
@pytest.mark.parametrize("profile", ["attention", "keyword", "hybrid"])
async def test_a_tools_result_at_the_end_changes_no_selection(town: Catalog, board_of: BoardOf, profile: str) -> None:
    board = board_of(town, profile=profile)

    asked = await board.route(ASK)
    looped = await board.route(said(("user", ASK), ("assistant", "Looking."), ("tool", "weather forecast tides")))

    assert "create_issue" in names(asked.active)
    assert looped.active == asked.active


@pytest.mark.requirement("P3")
async def test_a_short_follow_up_keeps_the_tools_of_what_it_follows(town: Catalog, board_of: BoardOf) -> None:
    board = board_of(town, k=3)
    forecast = ("user", "What is the weather forecast for Bergen this weekend?")

    follow_up = await board.route(said(forecast, ("assistant", "Rain."), ("user", "and in London?")))

    assert "get_forecast" in names(follow_up.active)


@pytest.mark.requirement("P4", "P12")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
@pytest.mark.parametrize(
    "turn", [Turn(messages=()), said(("user", " ")), said(("tool", ""))], ids=["none", "blank", "tool"]
)
async def test_without_any_text_every_tool_passes(town: Catalog, board_of: BoardOf, profile: str, turn: Turn) -> None:
    decision = await board_of(town, profile=profile).route(turn)

    assert len(decision.active) == len(town)
    assert decision.meets_target


@pytest.mark.requirement("P4")
async def test_without_a_users_message_what_else_was_said_is_routed_on(town: Catalog, board_of: BoardOf) -> None:
    decision = await board_of(town, k=2).route(said(("system", "You book repair slots for bicycles.")))

    assert "book_repair" in names(decision.active)
    assert len(decision.active) <= 2


@pytest.mark.requirement("P5")
async def test_each_of_several_intents_gets_its_tools(town: Catalog, catalog_of: CatalogOf, board_of: BoardOf) -> None:
    noise = [
        fake_tool(f"archive_{number}", f"Archive record number {number}.", server="archive") for number in range(60)
    ]
    board = board_of(catalog_of(*town.tools, *noise))

    decision = await board.route(
        "Extend the due date of my borrowed book, tell me when high water is at the harbour, "
        "and book a repair slot for my bicycle."
    )

    assert {"renew_loan", "get_tides", "book_repair"} <= set(names(decision.active))


@pytest.mark.requirement("P6")
async def test_a_very_long_message_is_bounded_work(town: Catalog, encoder: FakeEncoder, board_of: BoardOf) -> None:
    log = "12:00:00 worker heartbeat\n" * 4_000

    decision = await board_of(town, k=2).route(f"{log}\n{ASK}")

    assert "create_issue" in names(decision.active)
    assert max(map(len, encoder.encoded)) < 5_000


@pytest.mark.requirement("P7")
@pytest.mark.parametrize("profile", ["keyword", "hybrid"])
async def test_any_script_finds_its_tool(catalog_of: CatalogOf, board_of: BoardOf, profile: str) -> None:
    catalog = catalog_of(
        fake_tool("a", "Прогноз погоды на завтра"),
        fake_tool("b", "查询天气预报"),
        fake_tool("c", "मौसम की जानकारी"),
        fake_tool("d", "Send a letter"),
    )
    board = board_of(catalog, profile=profile, k=1)

    found = [(await board.route(query)).active for query in ("какая погода завтра", "天气预报", "मौसम बताओ")]

    assert [names(active) for active in found if active] in ([["b"], ["c"]], [["a"], ["b"], ["c"]])


@pytest.mark.requirement("P16")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
async def test_tools_without_a_description_are_ranked_and_never_merged(
    catalog_of: CatalogOf, board_of: BoardOf, profile: str
) -> None:
    tools = [fake_tool(name, text) for name, text in (("mute", ""), ("resize", "A tool."), ("send", "A tool."))]
    board = board_of(catalog_of(*tools), profile=profile)

    ranked = await board.rank("send")

    assert sorted(names([each.tool for each in ranked])) == ["mute", "resize", "send"]
    assert ranked[0].tool.name == "send"


@pytest.mark.requirement("P18")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
async def test_the_order_of_the_catalog_is_kept_whatever_the_scores(
    town: Catalog, board_of: BoardOf, profile: str
) -> None:
    decision = await board_of(town, profile=profile).route("close an issue, book a bicycle repair, renew a loan")
    places = [town.position[tool] for tool in decision.active]

    assert places == sorted(places)
    assert [each["name"] for each in decision.phase2] == names(decision.active)
    assert [each.rank for each in decision.candidates] == list(range(len(decision.candidates)))


@pytest.mark.requirement("design.fail-open")
@pytest.mark.parametrize("profile", ["attention", "semantic"])
async def test_where_the_encoder_fails_every_tool_the_caller_may_use_passes(
    town: Catalog, board_of: BoardOf, profile: str
) -> None:
    rules = [{"tools": "tickets/*", "scope": "staff"}]
    board = board_of(town, profile=profile, rules=rules, parts={"encoder": FakeEncoder(broken=True)})

    decision = await board.route(ASK)

    assert len(decision.active) == 6
    assert all(tool.server != "tickets" for tool in decision.active)


@pytest.mark.requirement("design.fail-open")
async def test_the_hybrid_routes_on_words_where_the_encoder_fails(town: Catalog, board_of: BoardOf) -> None:
    decision = await board_of(town, k=2, parts={"encoder": FakeEncoder(broken=True)}).route(ASK)

    assert "create_issue" in names(decision.active)
    assert len(decision.active) <= 2


@pytest.mark.requirement("design.token-budget")
async def test_definitions_stay_within_the_token_budget_and_a_missed_target_is_said(
    town: Catalog, board_of: BoardOf
) -> None:
    wide = await board_of(town, recall=1.0).route(ASK)
    tight = await board_of(town, recall=1.0, budget=80).route(ASK)

    assert tight.phase2_tokens <= 80 < wide.phase2_tokens
    assert (wide.meets_target, tight.meets_target) == (True, False)


@pytest.mark.requirement("M2")
async def test_what_the_caller_may_not_use_is_nowhere_in_a_decision(town: Catalog, board_of: BoardOf) -> None:
    decision = await board_of(town, rules=[{"tools": "tickets/*", "scope": "staff"}]).route(ASK)

    seen = (
        f"{decision.phase1} {decision.phase2} {decision.candidates} {decision.reachable} {decision.gated_out_by_state}"
    )
    assert "issue" not in seen.replace(ASK, "")


async def test_a_decision_names_its_turn_profile_query_and_time(
    town: Catalog, board_of: BoardOf, clock: FakeClock
) -> None:
    class Slow(FakeEncoder):
        async def encode(self, texts: Sequence[str]) -> Floats:
            clock.advance(0.25)
            return await super().encode(texts)

    board = board_of(town, profile="attention", parts={"encoder": Slow()})
    await board.warm()

    decision = await board.route(Turn.ask(ASK, id="turn-7"))

    assert (decision.turn_id, decision.profile, decision.query, decision.scale) == (
        "turn-7",
        "attention",
        ASK,
        "cosine",
    )
    assert decision.latency_ms == pytest.approx(250)


@pytest.mark.requirement("000.events")
@pytest.mark.parametrize("profile", PROFILE_NAMES)
async def test_every_decision_is_an_event_that_says_what_was_decided(
    town: Catalog, board_of: BoardOf, events: MemoryEvents, profile: str
) -> None:
    rules = [{"tools": "weather/*", "requires": ["is_authenticated:met"]}]

    decision = await board_of(town, profile=profile, rules=rules).route(Turn.ask(ASK, id="turn-7"))

    (event,) = events.of(RouteDecided)
    assert isinstance(event, RouteDecided)
    assert (event.at, event.turn_id, event.profile) == (1_000.0, "turn-7", profile)
    assert event.active_set == tuple(map(str, decision.active))
    assert event.candidates == tuple(event.scores) == tuple(str(each.tool) for each in decision.candidates)
    assert event.gated_out_by_state == ("weather/get_forecast", "weather/get_tides")
    assert (event.phase1_tokens, event.phase2_tokens) == (decision.phase1_tokens, decision.phase2_tokens)


@pytest.mark.requirement("000.events")
async def test_equal_queries_have_equal_hashes_in_their_events(
    town: Catalog, board_of: BoardOf, events: MemoryEvents
) -> None:
    board = board_of(town)
    for query in (ASK, ASK, "When is high water?"):
        await board.route(query)

    first, again, other = (event.as_dict()["query_embedding_hash"] for event in events.of(RouteDecided))
    assert first == again != other


@pytest.mark.requirement("M30")
@pytest.mark.parametrize("broken", [False, True], ids=["works", "encoder fails"])
@pytest.mark.parametrize("profile", PROFILE_NAMES)
async def test_no_text_of_the_conversation_reaches_events_or_logs(
    town: Catalog, board_of: BoardOf, events: MemoryEvents, caplog: pytest.LogCaptureFixture, profile: str, broken: bool
) -> None:
    turn = said(
        ("system", "The vault code is hush-hush."),
        ("user", "Create an issue: my password is hush-hush."),
        ("assistant", "hush-hush?"),
        ("tool", "token=hush-hush"),
        scopes=frozenset({"hush-hush"}),
        state=AgentState(auth=frozenset({"hush-hush"})),
    )
    with caplog.at_level(logging.DEBUG):
        board = board_of(town, profile=profile, parts={"encoder": FakeEncoder(broken=broken)})
        await board.route(turn)

    assert len(events.of(RouteDecided)) == 1
    assert "hush" not in json.dumps([event.as_dict() for event in events.of(RouteDecided)])
    assert "hush" not in caplog.text


async def test_an_empty_catalog_routes_to_nothing(catalog_of: CatalogOf, board_of: BoardOf) -> None:
    for profile in PROFILE_NAMES:
        decision = await board_of(catalog_of(), profile=profile).route(ASK)
        assert (decision.active, decision.phase1, decision.phase2) == ((), "", ())
