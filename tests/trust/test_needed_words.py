"""Which patterns a text cannot match, by its words: never one that it matches."""

from __future__ import annotations

import re
from itertools import product

import pytest

from pegboard.testing import fake_tool
from pegboard.trust import RULES, scan_patterns, wording_rules
from pegboard.trust.definition_texts import texts
from pegboard.trust.needed_words import PatternTable, needs
from pegboard.trust.scan import _by_rules
from pegboard_bench.scan.plant import PARTS, poisons

ADD = fake_tool("add", "Add two numbers.")


@pytest.mark.requirement("scan-meaning")
@pytest.mark.parametrize(
    ("pattern", "needed"),
    [
        (r"\bsend\ the\ keys?\b", [{"send"}, {"the"}, {"key"}]),
        (r"\b(?:read|open)\b.{0,9}(?:\.env|~/\.ssh)", [{"read", "open"}, {"env", "ssh"}]),
        (r"(?:ignor(?:e|ing)|forget)\ all", [{"ignor", "forget"}, {"all"}]),
        (r"(?:\d+|pay)", []),
        (r"(?:a|b)?x*", []),
        (r"<!--", [{"<!--"}]),
        (r"(?:无视|忘记)", [{"无视", "忘记"}]),
        (r"(?!secret)(?<=key)\w+", []),
        (r"(?:go\ ){2}", [{"go"}]),
    ],
)
def test_what_each_match_holds_is_read_off_the_pattern(pattern: str, needed: list[set[str]]) -> None:
    found = [set(each) for each in needs(re.compile(pattern, re.VERBOSE))]

    assert found == needed or (pattern.startswith("(?:ignor") and all(each in found for each in needed[1:]))


@pytest.mark.requirement("scan-meaning")
def test_no_pattern_that_matches_is_left_out() -> None:
    patterns = wording_rules._ALL
    table = PatternTable(patterns)
    attacks = [poison.planted(ADD) for part in PARTS for poison in poisons(part)]

    matched = 0
    for text in (each for tool in attacks for each in texts(tool)):
        possible = table.possible(text.plain)
        for place, pattern in enumerate(patterns):
            if pattern.search(text.plain):
                assert possible >> place & 1, (pattern.pattern, text.plain)
                matched += 1
    assert matched > 50


@pytest.mark.requirement("scan-meaning")
def test_no_rule_is_left_out_that_finds_something() -> None:
    attacks = [poison.planted(ADD) for part in PARTS for poison in poisons(part)]
    for text in (each for tool in [*attacks, ADD] for each in texts(tool)):
        assert list(_by_rules([text])) == [found for rule in RULES.values() for found in rule(text)]


def test_most_patterns_are_left_out_of_an_ordinary_text() -> None:
    table = PatternTable(wording_rules._ALL)

    assert table.possible("returns the open issues of a repository, newest first.").bit_count() < 3


def test_a_table_does_not_grow_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.trust.needed_words.MOST_WORDS", 100)
    table = PatternTable([re.compile("steal"), re.compile("keys?")])

    for first, second in product("abcdefghijklmnop", repeat=2):
        assert table.possible(f"{first}{second}x steal{second}") == 1

    assert len(table._known) <= 100
    assert not scan_patterns(ADD).findings
