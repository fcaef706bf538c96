from __future__ import annotations

from pathlib import Path

import pytest

from pegboard_bench import results
from pegboard_bench.cache import page, pictures, summary
from pegboard_bench.cache.boards import Intent, ToolBoard
from pegboard_bench.cache.grid import METHODS, cells, learnt, run
from pegboard_bench.cache.methods import MOST_FOUND, Append, CallTool, Defer, Eager, Naive, Refer
from pegboard_bench.cache.providers import Model
from pegboard_bench.cache.sessions import Cell, Conversation, Turn, conversations, turns, visitors

pytestmark = pytest.mark.slow

ALWAYS_ONE, TALKS = 0.0, 1.0
BOARD = ToolBoard(
    name="board",
    tokens=(300,) * 60,
    constant=700,
    intents=tuple(
        Intent(needed=frozenset({place}), relevant=(place, place + 1), likely=(place + 2,)) for place in range(0, 57, 3)
    ),
)
MODELS = ("claude-sonnet-5", "gpt-5.4", "gpt-5.6", "gemini-2.5-flash")


def cell(**changed: float) -> Cell:
    usual = {"turns": 8, "others": 10, "news": ALWAYS_ONE, "ttl": 300, "think": 20, "growth": 300} | changed
    return Cell(testbed="board", **usual)  # type: ignore[arg-type] # fields by name


def one_turn_after_another(*intents: Intent) -> list[Turn]:
    talk = Conversation(number=0, begins=0.0, intents=intents)
    return turns(cell(turns=len(intents)), [talk])


def test_equal_seeds_give_equal_conversations_and_no_two_cells_the_same() -> None:
    lively = cell(news=TALKS)

    assert conversations(lively, BOARD, 5, seed=1) == conversations(lively, BOARD, 5, seed=1)
    assert conversations(lively, BOARD, 5, seed=1) != conversations(lively, BOARD, 5, seed=2)


def test_as_many_conversations_begin_within_a_lifetime_as_the_cell_says() -> None:
    found = conversations(cell(turns=1, others=10), BOARD, 2_000, seed=1)

    assert 2_000 / found[-1].begins * 300 == pytest.approx(10, rel=0.1)


def test_turns_come_in_the_order_of_their_time() -> None:
    order = turns(cell(), conversations(cell(), BOARD, 6, seed=1))

    assert [turn.at for turn in order] == sorted(turn.at for turn in order)


def test_no_method_is_billed_less_than_the_conversation_without_tools() -> None:
    found = run(cell(news=TALKS), BOARD, "claude-sonnet-5", seed=1)

    assert found["none"].recall == 0
    assert found["none"].bill == min(each.bill for each in found.values())


def test_where_few_conversations_come_all_of_them_are_simulated() -> None:
    assert visitors(cell(others=1), BOARD, 10_000, 8, seed=1) == []
    assert [each.number for each in visitors(cell(), BOARD, 1_000, 8, seed=1)][:1] == [8]


def test_each_method_sends_what_it_is_said_to_send() -> None:
    first, second = BOARD.intents[0], BOARD.intents[1]
    order = one_turn_after_another(first, second)
    eager, naive, append, constant = Eager(BOARD), Naive(), Append(), CallTool()

    assert [len(eager.send(turn).tools or ()) for turn in order] == [60, 60]
    assert [naive.send(turn).tools for turn in order] == [(0, 1), (0, 3, 4)]
    assert [append.send(turn).tools for turn in order] == [(0, 1), (0, 1, 3, 4)]
    assert [constant.send(turn).injected for turn in order] == [(0, 1), (3, 4)]


def test_deferred_tools_are_found_when_they_are_needed_and_once() -> None:
    first, second = BOARD.intents[0], BOARD.intents[1]
    defer = Defer()

    sent = [defer.send(turn) for turn in one_turn_after_another(first, second, second, first)]

    assert [each.tools for each in sent] == [(0, 1)] * 4
    assert [each.found for each in sent] == [(), (3, 4, 5), (), ()]
    assert [each.offered for each in sent] == [{0, 1}, *[{0, 1, 3, 4, 5}] * 3]
    many = Intent(needed=frozenset({9}), relevant=tuple(range(9, 20)), likely=())
    assert defer.send(one_turn_after_another(first, many)[1]).found == tuple(range(9, 9 + MOST_FOUND))


def test_what_is_relevant_is_referred_to_once_and_what_is_missing_is_searched_for() -> None:
    first, second = BOARD.intents[0], BOARD.intents[1]
    unseen = Intent(needed=frozenset({40}), relevant=(0, 1), likely=(2, 5))
    refer = Refer(BOARD)

    sent = [refer.send(turn) for turn in one_turn_after_another(first, second, first, unseen, unseen)]

    assert [each.referred for each in sent] == [(0, 1), (3, 4), (), (), ()]
    assert [each.found for each in sent] == [(), (), (), (40, 2, 5), ()]
    assert {(each.tools, each.search) for each in sent} == {((), BOARD.search)}


def test_references_cost_about_what_call_tool_does() -> None:
    found = run(cell(news=TALKS, turns=20), BOARD, "claude-sonnet-5", seed=1)

    assert found["refer"].bill < 1.1 * found["call_tool"].bill
    assert found["hybrid"].bill <= found["eager"].bill
    assert found["refer"].recall == 1


def test_where_intents_stay_deferring_costs_what_the_search_tool_does() -> None:
    found = run(cell(turns=20), BOARD, "claude-sonnet-5", seed=1)

    assert found["naive"].bill < found["defer"].bill < 1.1 * found["naive"].bill


def test_where_intents_change_deferring_keeps_what_is_cached() -> None:
    found = run(cell(news=TALKS, turns=40, growth=2000), BOARD, "claude-sonnet-5", seed=1)

    assert found["defer"].bill < found["append"].bill < found["naive"].bill
    assert found["defer"].recall == 1
    assert "defer" not in run(cell(), BOARD, "gpt-5.4", seed=1)


def test_what_is_learnt_are_means_over_other_conversations() -> None:
    lively = cell(news=TALKS)
    model = Model.of("claude-sonnet-5", 300)

    taught = learnt(lively, BOARD, conversations(lively, BOARD, 50, seed=1), model)

    found = (taught.turns, taught.growth, taught.returns, taught.wanted)
    assert found == pytest.approx((8, 300, 1.0, 600), rel=0.02)  # and a little of the priors
    assert 0.8 < taught.news < 1


def test_entries_end_at_breakpoints_where_the_provider_says_so() -> None:
    caches = {name: type(Model.of(name, 300).cache()).__name__ for name in MODELS}

    assert caches == {
        "claude-sonnet-5": "MarkedCache",
        "gpt-5.4": "AutomaticCache",
        "gpt-5.6": "MarkedCache",
        "gemini-2.5-flash": "AutomaticCache",
    }
    assert [mark.block for mark in Model.of("claude-sonnet-5", 300).marks(4, 9)] == [4, 5, 7, 9]
    assert [mark.block for mark in Model.of("gpt-5.6", 300).marks(4, 9)] == [5, 9]


@pytest.mark.parametrize("model", MODELS)
def test_no_cell_of_a_small_grid_is_dearer_with_pegboard_than_with_all_tools(model: str) -> None:
    for each in (cell(), cell(news=TALKS), cell(turns=1), cell(think=400), cell(others=100, news=TALKS, turns=20)):
        found = run(each, BOARD, model, seed=1)

        assert found["hybrid"].bill <= 1.01 * found["eager"].bill, each.name
        assert found["sticky"].bill <= 1.01 * found["eager"].bill, each.name
        assert found["hybrid"].recall == 1


def test_a_filter_on_each_turn_is_dearer_than_all_tools_where_intents_change() -> None:
    found = run(cell(news=TALKS, turns=40, growth=2000), BOARD, "claude-sonnet-5", seed=1)

    assert found["naive"].bill > 2 * found["eager"].bill
    assert found["call_tool"].bill < found["eager"].bill


def test_the_grid_has_each_combination_once_and_single_turns_without_what_needs_several() -> None:
    found = list(cells(["board"]))

    assert len({each.name for each in found}) == len(found)
    assert {(each.think, each.growth, each.news) for each in found if each.turns == 1} == {(20, 300, 0.0)}


def test_the_page_and_its_maps_say_what_was_measured(tmp_path: Path) -> None:
    rows = [
        summary.measured(each, model, BOARD, seed=1)
        for each in (cell(turns=2), cell(turns=3, news=TALKS))
        for model in MODELS
    ]
    tables = summary.tables(rows) | {"testbeds": [["board", 60, 18_000, 700]]}
    figures = summary.figures(rows)
    path = results.write("cache", command="make bench-cache", seed=1, figures=figures, tables=tables, folder=tmp_path)

    text = page.section(results.read(path))
    pictures.draw(tables, tmp_path)

    assert f"| anthropic | {figures['worst_billed_over_eager/anthropic']:.3f} |" in text
    assert "Goals that are missed: " in text or "All goals are met." in text
    assert set(page.METHODS) == set(METHODS)
    for model in MODELS:
        assert f"### {model}" in text
        assert (page.METHODS["defer"] in text.partition(f"### {model}")[2].partition("###")[0]) is model.startswith(
            "claude"
        )
        assert (tmp_path / pictures.picture(model)).read_text().startswith("<?xml")
