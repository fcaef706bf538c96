from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Tool
from pegboard.retrieval.lexical import KeywordIndex
from pegboard.retrieval.postings import Numbers, Postings
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words
from pegboard.testing import fake_tool


def tool(name: str, description: str = "", *, category: str | None = None, aliases: tuple[str, ...] = ()) -> Tool:
    return replace(fake_tool(name, description, server="s"), category=category, aliases=aliases)


def ranking(query: str, *tools: Tool) -> list[str]:
    points = KeywordIndex(tools).scores(query)
    return [tools[place].name for place in sorted(range(len(tools)), key=lambda i: -points[i]) if points[place] > 0]


@pytest.mark.requirement("002.tiers")
def test_an_exact_name_beats_a_word_in_a_name_beats_the_description_beats_the_category() -> None:
    tools = [
        tool("by_category", category="export"),
        tool("by_description", "Can export a report."),
        tool("export_report"),
        tool("export"),
    ]

    assert ranking("export", *tools) == ["export", "export_report", "by_description", "by_category"]


@pytest.mark.requirement("002.tiers")
def test_the_seeds_example_finds_the_exact_name_first_whatever_the_order_of_the_catalog() -> None:
    tools = [tool("create_issue_from_template"), tool("create_issue"), tool("delete_project")]

    assert ranking("create an issue", *tools) == ["create_issue", "create_issue_from_template"]


WORDS = ["alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "iota", "kappa"]


@pytest.mark.requirement("002.tiers")
@given(keywords=st.lists(st.sampled_from(WORDS), min_size=1, max_size=9, unique=True))
def test_no_number_of_matches_in_a_tier_outweighs_one_in_the_tier_above(keywords: list[str]) -> None:
    everything = " ".join(keywords)
    query = f"omega {everything}"[: len("omega ") + len(everything)] if len(keywords) < 9 else everything
    first = query.split()[0]
    tools = [
        tool("x", category=everything),
        tool("y", first),
        tool("z", query),
        tool(f"{first}_thing"),
        tool(f"thing_{query}", query, category=query),
        tool(query.replace(" ", "_")),
    ]

    points = KeywordIndex(tools).scores(query)

    assert points[0] < points[1] <= points[2] < points[3] <= points[4] < points[5]


@pytest.mark.requirement("002.aliases")
def test_an_alias_counts_like_the_name() -> None:
    tools = [tool("file_a_bug_somewhere"), tool("create_issue", aliases=("bug report",))]

    assert ranking("bug report", *tools) == ["create_issue", "file_a_bug_somewhere"]


def test_a_category_is_the_server_where_the_tool_has_none() -> None:
    in_server = replace(fake_tool("x", server="calendar"))

    assert KeywordIndex([in_server]).scores("calendar")[0] > 0


def test_words_that_carry_no_meaning_match_nothing_beside_words_that_do() -> None:
    tools = [tool("say", "It is for the one with the most."), tool("export_report")]

    assert ranking("can you export it for the team", *tools) == ["export_report"]


def test_a_query_of_nothing_but_function_words_still_matches_by_them() -> None:
    assert ranking("what can you do", tool("what_can_do"), tool("export")) == ["what_can_do"]


@pytest.mark.parametrize("query", ["", "…", "zebra"])
def test_no_match_gives_no_points(query: str) -> None:
    assert KeywordIndex([tool("export"), tool("import")]).scores(query).tolist() == [0, 0]


def test_an_empty_catalog_gives_no_scores() -> None:
    assert KeywordIndex([]).scores("export").shape == (0,)


@pytest.mark.requirement("P7")
def test_any_script_is_matched() -> None:
    assert ranking("查天气", tool("a", "查询天气预报"), tool("b", "发送邮件")) == ["a"]
    assert ranking("मौसम", tool("a", "समय बताओ"), tool("b", "मौसम बताओ")) == ["b"]


@given(queries=st.lists(st.text("ab c_B天", max_size=9), max_size=6), asked=st.text("ab c_B天", max_size=12))
def test_points_are_the_sum_of_those_of_each_word(queries: list[str], asked: str) -> None:
    tools = [tool(f"x{place}", text, category=text[:3] or None) for place, text in enumerate(queries)]

    points = KeywordIndex(tools).scores(asked)

    words = set(raw_words(asked))
    words = {word for word in words if word not in FUNCTION_WORDS} or words
    in_text = [len(words.intersection(raw_words(each.description))) for each in tools]
    in_category = [len(words.intersection(raw_words(each.category or each.server))) for each in tools]
    assert points.tolist() == [10 * text + category for text, category in zip(in_text, in_category, strict=True)]


def test_a_query_of_thousands_of_words_looks_each_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    index = KeywordIndex([tool(f"export_{place}", "Exports a report.") for place in range(50)])
    asked: list[str] = []
    of = Postings.of

    def noting(self: Postings, word: str) -> Numbers:
        asked.append(word)
        return of(self, word)

    monkeypatch.setattr(Postings, "of", noting)
    index.scores(" ".join(f"w{number}" for number in range(2_000)) + " export" * 2_000)

    assert asked.count("export") == 3
    assert len(asked) <= 3 * 2_001 + 2
