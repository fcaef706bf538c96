from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.catalog import BpeCounter, compact_json

COUNTER = BpeCounter()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello world", 2), ("tiktoken is great!", 6), ("antidisestablishmentarianism", 6), ("2 + 2 = 4", 7)],
)
def test_cl100k_counts_are_those_that_openai_publishes(text: str, tokens: int) -> None:
    assert COUNTER.count([text]) == [tokens]


def test_each_text_is_counted_by_itself() -> None:
    assert COUNTER.count(["hello world", "", "hello"]) == [2, 0, 1]
    assert COUNTER.count([]) == []


@given(text=st.text(max_size=200), limit=st.integers(0, 40))
def test_a_cut_text_is_a_start_of_the_text_within_the_limit(text: str, limit: int) -> None:
    kept = COUNTER.cut(text, limit)

    assert text.startswith(kept)
    assert COUNTER.count([kept])[0] <= limit
    if COUNTER.count([text])[0] <= limit:
        assert kept == text


@given(text=st.text(st.characters(codec="utf-8", categories=["So", "Mn", "Lo", "Zs", "Cf"]), max_size=60))
def test_no_character_is_cut_in_two(text: str) -> None:
    for limit in range(COUNTER.count([text])[0] + 1):
        assert text.startswith(COUNTER.cut(text, limit))


def test_half_a_surrogate_pair_is_counted_as_one_unknown_character() -> None:
    assert COUNTER.count(["a\ud83db"]) == COUNTER.count(["a?b"])
    assert COUNTER.cut("a\ud83db", 100) == "a?b"


def test_the_two_encodings_count_differently() -> None:
    text = "天气预报怎么样?"

    assert BpeCounter("o200k_base").count([text])[0] < COUNTER.count([text])[0]


def test_compact_json_has_no_blanks_and_keeps_characters_and_order() -> None:
    assert compact_json({"b": [1, 2], "a": "é天"}) == '{"b":[1,2],"a":"é天"}'
