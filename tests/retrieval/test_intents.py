from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.retrieval.intents import MOST, clauses, with_clauses

ASK = "why was the heartbeat lost last night"


def texts(text: str) -> list[str]:
    return [part.strip() for part in with_clauses(text, clauses(text))[1:]]


@pytest.mark.requirement("P5")
@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("create a branch and open a pull request", ["create a branch", "open a pull request"]),
        ("Find the invoice. Send it to Ana.", ["Find the invoice", "Send it to Ana."]),
        ("q1: what time is it in Oslo\nq2: will it rain tomorrow", ["q1", "what time is it in Oslo"]),
        ("查一下北京的天气，然后订一家酒店", ["查一下北京的天气", "订一家酒店"]),
        ("search hotels in Bergen; also book the ferry", ["search hotels in Bergen", "book the ferry"]),
    ],
)
def test_a_message_that_asks_for_several_things_has_a_clause_for_each(text: str, parts: list[str]) -> None:
    assert "".join(texts(text)).startswith(parts[0])
    assert all(any(part in found for found in texts(text)) for part in parts)
    assert len(texts(text)) > 1


@pytest.mark.parametrize(
    "text",
    ["take a screenshot", "Which city is at (104.07, 30.66)?", "", "   ", "server: charts\ntool: draw a word cloud"],
)
def test_one_wish_is_one_clause(text: str) -> None:
    assert len(clauses(text)) == 1


@given(text=st.text(max_size=400))
def test_clauses_are_in_order_apart_and_bounded(text: str) -> None:
    found = clauses(text)

    assert 1 <= len(found) <= MOST
    assert all(start <= end for start, end in found)
    assert all(first[1] <= second[0] for first, second in pairwise(found))
    assert found[-1][1] <= len(text)


@pytest.mark.requirement("P6")
def test_a_pasted_log_has_no_more_clauses_than_any_text() -> None:
    assert len(clauses("12:00:00 worker heartbeat lost\n" * 5_000)) == MOST


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("place", [0, -1], ids=["first", "last"])
def test_the_ask_at_either_end_of_a_pasted_log_is_a_clause_of_its_own(place: int) -> None:
    log = ["worker heartbeat lost"] * 50
    text = "\n".join([ASK, *log] if place == 0 else [*log, ASK])

    start, end = clauses(text)[place]

    assert text[start:end] == ASK


@pytest.mark.requirement("D3")
@pytest.mark.parametrize("blank", [" ", "\t ", "\n ", "\r\n", " \n\t", ", ", "and ", " and"])
def test_a_long_message_of_blanks_is_read_once(blank: str) -> None:
    """Each of 300,000 took as long as all that followed: minutes, with everybody waiting."""
    text = f"book a hotel{blank * 300_000}find a flight"

    found = clauses(text)

    assert found[0][0] == 0
    assert found[-1][1] == len(text)


@pytest.mark.parametrize("sign", [".", "?!", ":"])
def test_a_long_run_of_stops_is_read_once(sign: str) -> None:
    text = f"book a hotel {sign * 300_000}find a flight"

    assert clauses(text) == [(0, len(text))]
