"""The list of categories: every one is named, and their descriptions share a budget of tokens."""

from __future__ import annotations

from pegboard.catalog import BpeCounter, compact_json
from pegboard.gateways.mcp.gateway.meta_results import about, within_tokens
from pegboard.model import Server, ServerName
from pegboard.testing import fake_tool

COUNTER = BpeCounter()
LONG = "Everything about trains and their timetables, stations, platforms, delays, prices and seats"


def tokens(categories: list[dict[str, object]]) -> int:
    return sum(COUNTER.count([compact_json(each) for each in categories]))


def test_a_list_within_the_budget_is_left_as_it_is() -> None:
    few = [{"category": "rail", "tools": 3, "description": LONG}]

    assert within_tokens(few, 2000, COUNTER) == few


def test_long_descriptions_are_cut_before_short_ones_and_no_category_is_left_out() -> None:
    texts = [LONG if number % 2 else "tides" for number in range(60)]
    many = [{"category": f"group {number}", "tools": 3, "description": text} for number, text in enumerate(texts)]

    fitting = within_tokens(many, 1200, COUNTER)

    assert tokens(many) > 1200 >= tokens(fitting)
    assert [each["category"] for each in fitting] == [each["category"] for each in many]
    assert all(each["description"] == "tides" for each in fitting[::2])
    assert all(str(each["description"]).endswith("…") for each in fitting[1::2])


def test_without_any_room_only_the_names_are_left() -> None:
    many = [{"category": f"group {number}", "tools": 3, "description": LONG} for number in range(60)]

    assert within_tokens(many, 10, COUNTER) == [{"category": each["category"], "tools": 3} for each in many]


def test_a_servers_title_does_not_say_what_it_is_for() -> None:
    titled = Server(name=ServerName("rail"), title="Rail Server", description="Rail Server")
    tools = [fake_tool("list_trains", server="rail"), fake_tool("delay_train", server="rail")]

    assert about("rail", tools, titled) == {"category": "rail", "tools": 2, "description": "list: train, delay"}
    assert about("rail", tools, None, "By hand")["description"] == "By hand"
