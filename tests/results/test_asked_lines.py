"""Lines about what was asked: all terms in one pass, as if each were looked for by itself."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.results.asked_lines import asked_lines

PIECES = st.sampled_from(
    ["ab", "abc", "b", "a.b", "_a", "é", "日本", "\U0001f600", "Straße", "7", "1.1", " ", "-", "\ud800"]
)
LINES = st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=1, max_size=12)


@given(lines=LINES, word=st.lists(PIECES, min_size=1, max_size=3).map("".join))
def test_lines_with_a_word_are_those_in_which_it_goes_on_neither_before_nor_behind(lines: list[str], word: str) -> None:
    folded = word.casefold()
    if not re.fullmatch(r"[^\W_]{2,}", folded):
        return
    lines += ["~"] * (4 * len(lines))
    alone = re.compile(rf"(?<![^\W_]){re.escape(folded)}(?![^\W_])")
    assert sorted(asked_lines(lines, word)) == [at for at, line in enumerate(lines) if alone.search(line.casefold())]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("the sum of Ann's orders", [3]),
        ("ANN", [3]),
        ("order-7", [4]),
        ("straße", [5]),
        ("nothing", []),
        ("", []),
        ("x", []),
    ],
)
def test_words_are_found_whole_and_in_any_case(asked: str, found: list[int]) -> None:
    lines = ["id name", "1 Annabel", "2 Joanna", "3 Ann", "order-7 b", "Strasse 日本ann", "6", "7 c", "8 d"]
    assert asked_lines(lines, asked) == found
