from __future__ import annotations

import pickle
from dataclasses import replace
from decimal import Decimal
from math import isnan
from typing import Any

from pegboard.activity_entries import NOT_RANKED, ActivityEntry, ScoredTool
from pegboard.events import (
    CallFinished,
    Event,
    ModelRequestServed,
    OutcomeReported,
    ResultRead,
    ResultShaped,
    RouteAnswered,
    RouteDecided,
    ToolsListed,
    ToolsOffered,
    ToolsSearched,
)
from pegboard.model_prices import ModelPrice, PriceTable
from pegboard.spend_limits import NanoUsd
from pegboard.telemetry.activity_book import LONGEST_NAME, LONGEST_TEXT, MOST_OFFERED, MOST_TOOLS, ActivityBook, clean

DECIDED = RouteDecided(
    at=1.0,
    turn_id="turn",
    profile="hybrid",
    query_embedding_hash="",
    candidates=("time/now", "git/log"),
    scores={"time/now": 0.9, "git/log": 0.2},
    gated_out_by_state=(),
    active_set=("time/now",),
    phase1_tokens=0,
    phase2_tokens=30,
    latency_ms=4.5,
    encoder="minilm",
    query="what time is it?",
)
SEARCHED = ToolsSearched(
    at=2.0, found=1, by_words=False, decision="turn", key="ann", client="a client", conversation="c"
)
SERVED = ModelRequestServed(
    at=3.0,
    upstream="openai",
    format="openai-chat",
    model="gpt-x-mini",
    key="team",
    status=200,
    outcome="filtered",
    reason="",
    tools=40,
    kept=2,
    tokens_before=4_000,
    tokens_after=1_000,
    decision="turn",
    called=("now",),
    added_ms=2.5,
    latency_ms=900.0,
)


def taken(*events: Event, prices: dict[str, float] | None = None) -> list[ActivityEntry]:
    """The entries as a store has them: the last of each id."""
    own = [(pattern, ModelPrice(input=Decimal(usd))) for pattern, usd in (prices or {}).items()]
    book, entries = ActivityBook(PriceTable(own=own)), dict[str, ActivityEntry]()
    for event in events:
        for entry in book.take(event):
            entries[entry.id] = entry
    return list(entries.values())


def called(tool: str, **fields: Any) -> CallFinished:
    return CallFinished(at=4.0, tool=tool, success=fields.pop("success", True), latency_ms=1.0, **fields)


def test_of_a_decision_about_thousands_of_tools_only_what_entries_say_is_remembered() -> None:
    names = tuple(f"git/tool {number}" for number in range(5_000))
    made = replace(
        DECIDED,
        candidates=names,
        scores=dict.fromkeys(names, 1.0),
        active_set=names[1:],
        gated_out_by_state=names,
        query="time? " * 10_000,
    )
    book = ActivityBook(PriceTable())
    book.take(made)
    size = len(pickle.dumps([each._made for each in book._decisions.values()]))
    [entry] = book.take(SEARCHED)

    assert size < 10_000
    assert [each.name for each in entry.ranked] == list(names[:MOST_TOOLS])
    assert [each.offered for each in entry.ranked] == [False] + [True] * (MOST_TOOLS - 1)
    assert entry.text == made.query[:LONGEST_TEXT]


def test_a_search_has_the_scores_and_the_text_of_its_decision() -> None:
    [entry] = taken(DECIDED, SEARCHED)

    assert (entry.door, entry.kind, entry.key, entry.client, entry.conversation) == (
        "mcp",
        "search",
        "ann",
        "a client",
        "c",
    )
    assert entry.ranked == (ScoredTool("time/now", 0.9, True), ScoredTool("git/log", 0.2, False))
    assert (entry.text, entry.profile, entry.encoder, entry.latency_ms) == ("what time is it?", "hybrid", "minilm", 4.5)


def test_what_a_client_has_at_hand_after_a_search_or_a_route_was_offered_and_not_what_its_ranking_chose() -> None:
    searched = replace(SEARCHED, found=2, at_hand=("git/log", "git/show"))
    route = ToolsOffered(
        at=5.0, way="route", offered=1, decision=DECIDED.turn_id, conversation="c", at_hand=("git/log",)
    )
    calls = [called(tool, conversation="c") for tool in ("git/log", "git/show", "time/now")]

    search, routed = taken(DECIDED, searched, *calls, route)

    assert [(each.name, each.offered) for each in search.ranked] == [
        ("time/now", False),
        ("git/log", True),
        ("git/show", True),
    ]
    assert [each.score for each in search.ranked[:2]] == [0.9, 0.2]
    assert isnan(search.ranked[2].score), "it is beyond the candidates of the decision"
    assert search.missed == ("time/now",)
    assert [each.offered for each in routed.ranked] == [False, True]


def test_a_search_that_showed_nothing_offered_nothing_whatever_its_ranking_chose() -> None:
    [entry] = taken(DECIDED, replace(SEARCHED, found=0, at_hand=()), called("time/now", conversation="c"))

    assert [each.offered for each in entry.ranked] == [False, False]
    assert entry.missed == ("time/now",)


def test_of_more_tools_than_an_entry_names_none_is_known_to_have_been_missed() -> None:
    names = tuple(f"git/tool {number}" for number in range(MOST_TOOLS + 20))
    made = replace(DECIDED, scores=dict.fromkeys(names, 1.0), active_set=names[1:])
    answered = RouteAnswered(
        at=3.0,
        decision=DECIDED.turn_id,
        key="",
        conversation="",
        tools=99,
        offered=len(names) - 1,
        tokens_before=9,
        tokens_after=9,
    )
    reports = [
        OutcomeReported(at=4.0, decision=DECIDED.turn_id, tool=tool, success=True) for tool in (names[0], names[-1])
    ]

    [entry] = taken(made, answered, *reports)

    assert entry.missed == (names[0],)


def test_of_more_tools_at_hand_than_an_entry_names_it_says_how_many_there_were_and_none_was_missed() -> None:
    at_hand = tuple(f"git/tool {number}" for number in range(340))
    made = replace(DECIDED, scores={"time/now": 0.9, at_hand[-1]: 0.2}, active_set=("time/now",))
    calls = [called(tool, conversation="c") for tool in ("time/now", at_hand[0], at_hand[-1], at_hand[-2])]

    [entry] = taken(made, replace(SEARCHED, found=2, at_hand=at_hand), *calls)

    named = [each.name for each in entry.ranked if each.offered]
    assert named == [at_hand[-1], *at_hand[:MOST_OFFERED]], "a candidate is named whatever its place"
    assert len(named) + entry.more_offered == len(at_hand)
    assert entry.missed == ("time/now",)


def test_calls_are_noted_in_the_last_decision_of_their_conversation() -> None:
    other = replace(SEARCHED, conversation="another")
    mine, others = taken(
        DECIDED,
        SEARCHED,
        other,
        called("git/log", conversation="c"),
        called("time/now", conversation="c", success=False),
        called("time/now", conversation="unknown"),
    )

    assert (mine.called, mine.failures, mine.missed) == (("git/log", "time/now"), 1, ("git/log",))
    assert others.called == ()


def test_a_search_after_an_unused_decision_is_noted_there() -> None:
    listed = ToolsListed(
        at=1.0, exposure="static", tools=50, listed=5, tokens_before=9_000, tokens_after=700, conversation="c"
    )

    first, second, third = taken(listed, SEARCHED, called("time/now", conversation="c"), SEARCHED)

    assert (first.kind, first.offered, first.tokens_before, first.searches) == ("list", 5, 9_000, 1)
    assert (second.searches, third.searches) == (0, 0)


def test_a_route_is_asked_for_as_a_search_is_and_a_push_is_not() -> None:
    route = ToolsOffered(at=5.0, way="route", offered=1, decision=DECIDED.turn_id, conversation="c", client="a client")
    push = replace(route, way="push", offered=2)

    search, routed, pushed = taken(DECIDED, SEARCHED, route, push, called("time/now", conversation="c"))

    assert (search.kind, search.searches, search.called) == ("search", 1, ())
    assert (routed.kind, routed.offered, routed.called, routed.profile) == ("route", 1, ("time/now",), "hybrid")
    assert (pushed.kind, pushed.offered, pushed.called, pushed.client) == ("push", 2, (), "a client")


def test_calls_without_a_conversation_follow_the_decision_of_their_key() -> None:
    [entry] = taken(replace(SEARCHED, conversation=""), called("time/now", key="ann"), called("git/log", key="bob"))

    assert entry.called == ("time/now",)


def test_a_model_request_has_its_tokens_and_what_they_cost() -> None:
    decided = replace(DECIDED, scores={"/now": 0.9, " /now": 0.1}, active_set=("/now",))

    [entry] = taken(decided, SERVED, prices={"gpt-x*": 2.0, "*": 100.0})

    assert (entry.door, entry.kind, entry.key, entry.upstream, entry.model) == (
        "llm",
        "request",
        "team",
        "openai",
        "gpt-x-mini",
    )
    assert (entry.tools, entry.offered, entry.tokens_before, entry.tokens_after) == (40, 2, 4_000, 1_000)
    assert (entry.billed, entry.saved) == (2_000_000, 6_000_000)
    assert entry.ranked == (ScoredTool("now", 0.9, True), ScoredTool("now", 0.1, False))
    assert (entry.missed, entry.latency_ms, entry.error) == ((), 2.5, "")


def test_requests_that_share_a_decision_are_entries_of_their_own() -> None:
    first, second = taken(DECIDED, SERVED, SERVED)

    assert first.id != second.id
    assert first.scores == second.scores != NOT_RANKED


def test_without_a_price_nothing_is_said_about_money() -> None:
    [entry] = taken(SERVED, prices={"claude*": 2.0})

    assert (entry.billed, entry.saved) == (0, 0)


def test_a_metered_request_has_its_usage_and_definitions_cost_what_its_prompt_did() -> None:
    paid = NanoUsd(round((1_000 * 2 + 9_000 * 0.2) * 1_000))
    metered = replace(
        SERVED,
        metered=True,
        input_tokens=10_000,
        cached_tokens=9_000,
        output_tokens=50,
        cost=NanoUsd(7_000_000),
        prompt_cost=paid,
    )

    [entry] = taken(metered, prices={"gpt-x*": 2.0})

    assert (entry.input_tokens, entry.cached_tokens, entry.output_tokens) == (10_000, 9_000, 50)
    assert (entry.cost, entry.unpriced) == (7_000_000, 0)
    assert (entry.billed, entry.saved) == (paid / 10, 3 * paid / 10)


def test_a_metered_request_without_a_cost_is_counted_as_such() -> None:
    [unknown] = taken(replace(SERVED, metered=True, input_tokens=9, output_tokens=1))
    [refused] = taken(replace(SERVED, status=429))

    assert (unknown.cost, unknown.unpriced, unknown.input_tokens) == (0, 1, 9)
    assert refused.unpriced == 0


def test_an_error_is_the_failure_or_the_status() -> None:
    refused, unfiltered = taken(replace(SERVED, status=429), replace(SERVED, failure="encoder_failed"))

    assert (refused.error, unfiltered.error) == ("status 429", "encoder_failed")


def test_a_route_of_the_http_api_gets_the_outcomes_that_are_reported_for_it() -> None:
    answered = RouteAnswered(
        at=2.0, decision="turn", key="ann", conversation="", tools=9, offered=1, tokens_before=500, tokens_after=50
    )
    reported = OutcomeReported(at=3.0, decision="turn", tool="time/now", success=False)

    [entry] = taken(DECIDED, answered, reported, replace(reported, decision="another"))

    assert (entry.id, entry.door, entry.kind, entry.tools, entry.offered) == ("turn", "api", "route", 9, 1)
    assert (entry.called, entry.failures) == (("time/now",), 1)


def test_an_outcome_brings_no_erased_route_back() -> None:
    book = ActivityBook(PriceTable())
    answered = RouteAnswered(
        at=2.0, decision="turn", key="ann", conversation="talk", tools=9, offered=1, tokens_before=500, tokens_after=50
    )
    assert book.take(answered)

    book.forget("talk")

    assert book.take(OutcomeReported(at=3.0, decision="turn", tool="time/now", success=True)) == []


def test_an_entry_stays_small_whatever_clients_send() -> None:
    names = tuple("n" * 10_000 for _ in range(1_000))
    decided = replace(DECIDED, scores={f"{number} {names[0]}": 0.1 for number in range(1_000)}, query="q" * 100_000)

    [entry] = taken(decided, replace(SERVED, called=names, brought_back=names, model=names[0]))

    assert {len(entry.called), len(entry.brought_back), len(entry.ranked)} == {MOST_TOOLS}
    assert max(len(name) for name in (*entry.called, entry.model)) == LONGEST_NAME
    assert len(entry.text) == 2_000


def test_texts_are_such_as_every_store_takes() -> None:
    assert clean("a\x00b\ud800c") == "a\ufffdb?c"


def test_ids_of_a_process_follow_each_other_and_are_its_own() -> None:
    first, second = ([each.id for each in taken(*[SERVED] * 20)] for _ in range(2))

    assert sorted(first) == first
    assert len({*first, *second}) == 40


def test_a_shortened_result_is_no_further_decision_after_which_its_tool_was_called() -> None:
    book = ActivityBook(PriceTable())
    shaped = ResultShaped(
        at=5.0, tool="git/log", server="git", rules=("columns",), tokens_before=900, tokens_after=90, kept=True
    )
    read = ResultRead(at=6.0, tool="git/log", server="git", tokens=40)
    called = CallFinished(
        at=4.0, tool="git/log", server="git", success=True, latency_ms=1.0, key="ann", conversation="c"
    )
    entries = {
        each.id: each
        for event in (SEARCHED, called, shaped, replace(shaped, door="llm"), read)
        for each in book.take(event)
    }
    assert [each.kind for each in entries.values() if "git/log" in each.names("tool")] == ["search"]
    results = [each for each in entries.values() if each.kind == "result"]
    assert [(each.door, each.upstream, each.called) for each in results] == [
        ("mcp", "git/log", ()),
        ("llm", "git/log", ()),
        ("mcp", "git/log", ()),
    ]
    assert sum(each.tokens_before - each.tokens_after for each in results) == 2 * 810 - 40
