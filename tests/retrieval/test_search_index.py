"""What a search adds to a ranking: spelling, named servers, and that nothing matches."""

from __future__ import annotations

import random

import pytest

from pegboard.model import Candidate, Server, ServerName, Tool, ToolId
from pegboard.retrieval import speller
from pegboard.retrieval.no_match import shipped
from pegboard.retrieval.search_index import SearchIndex, certainty
from pegboard.retrieval.speller import MOST_UNKNOWN, Speller, edits
from pegboard.testing import fake_tool

TOOLS = [
    fake_tool("jira_create_issue", "Create an issue in Jira.", server="atlassian"),
    fake_tool("jira_get_issue", "Get an issue.", server="atlassian"),
    fake_tool("jira_delete_issue", "Delete an issue.", server="atlassian"),
    fake_tool("confluence_get_page", "Get a wiki page.", server="atlassian"),
    fake_tool("create_issue", "Create an issue in a repository.", server="github"),
    fake_tool("create_branch", "Create a branch.", server="github"),
    fake_tool("take_heapsnapshot", "Capture the memory of a page.", server="browser"),
    fake_tool("remember", "Keep a fact.", server="memory"),
]
BY_NAME = {tool.name: tool.id for tool in TOOLS}


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    servers = dict.fromkeys(tool.server for tool in TOOLS)
    return SearchIndex(TOOLS, {name: Server(name=ServerName(name)) for name in servers})


def candidate(name: str, score: float, cosine: float = 0.5) -> Candidate:
    return Candidate(tool=BY_NAME[name], score=score, rank=0, parts={"cosine": cosine})


def order(index: SearchIndex, query: str, **scores: float) -> list[str]:
    return [each.tool.name for each in index.ordered(query, [candidate(*each) for each in scores.items()])]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("crate_isue", "create_issue"),
        ("crate issue", "crate issue"),
        ("creat an isue", "creat an issue"),
        ("delte brnch", "delete branch"),
        ("GitHub createIssue", "github createIssue"),
        ("a recipe for a tissue", "a recipe for a tissue"),
        ("aws gcp", "aws gcp"),
        ("создать задачу", "создать задачу"),
        ("", ""),
    ],
)
def test_only_misspelt_words_are_corrected(written: str, meant: str) -> None:
    assert Speller(TOOLS).corrected(written) == meant


def test_a_text_of_many_words_that_the_catalog_does_not_have_is_not_corrected() -> None:
    odd = [f"zq{first}{second}x" for first in "abcdefg" for second in "hijkl"]

    assert Speller(TOOLS).corrected(" ".join(["delte brnch", *odd[: MOST_UNKNOWN - 2]])).startswith("delete branch zq")
    assert Speller(TOOLS).corrected(text := " ".join(["delte brnch", *odd])) == text
    assert Speller(TOOLS).corrected("delte brnch " * 50) == "delete branch " * 50


def test_two_errors_are_corrected_in_long_words_only() -> None:
    speller = Speller([fake_tool("summarize_transactions"), fake_tool("branch")])

    assert speller.corrected("transctons brnh") == "transactions brnh"
    assert edits("transctons", "transactions", 2) == 2


def test_a_named_servers_tools_come_first(index: SearchIndex) -> None:
    scores = {"create_issue": 0.8, "jira_get_issue": 0.3, "jira_create_issue": 0.5, "create_branch": 0.1}

    assert order(index, "create an issue", **scores)[0] == "create_issue"
    for query in ("jira: create issue", "create a Jira issue", "issue in atlassian", "Atlassian: create issue"):
        assert order(index, index.corrected(query), **scores)[:2] == ["jira_create_issue", "jira_get_issue"]
    assert order(index, "github create issue", **scores)[:2] == ["create_issue", "create_branch"]


def test_an_exact_name_comes_before_a_named_server(index: SearchIndex) -> None:
    assert order(index, "jira: create_branch", jira_get_issue=0.9, create_branch=0.9995)[0] == "create_branch"


def test_an_ordinary_word_names_a_server_only_if_its_tools_are_likely_too(index: SearchIndex) -> None:
    assert order(index, "memory snapshot", take_heapsnapshot=0.9, remember=0.01)[0] == "take_heapsnapshot"
    assert order(index, "memory: keep this", take_heapsnapshot=0.9, remember=0.05)[0] == "remember"


def test_what_shares_neither_words_nor_meaning_matches_nothing(index: SearchIndex) -> None:
    unlike = [candidate("create_issue", 0.9, cosine=0.2)]

    assert index.chance("order a pizza", unlike) < shipped().least
    assert index.chance("create an issue", [candidate("create_issue", 0.1, cosine=0.6)]) > shipped().least
    assert index.chance("order a pizza", [candidate("create_issue", 0.9995, cosine=0.2)]) == 1, "it is named"
    assert index.chance("order a pizza", unlike, comparable=False) == 0
    assert index.chance("issue", unlike, comparable=False) == 1
    assert index.chance("create an issue", []) < shipped().least


def test_a_tool_that_the_catalog_no_longer_has_is_no_error(index: SearchIndex) -> None:
    gone = Candidate(tool=ToolId("gone", "gone"), score=0.5, rank=0, parts={"cosine": 0.9})

    assert 0 < index.chance("create an issue", [gone]) < 1


def test_certainty_has_three_words() -> None:
    assert [certainty(each) for each in (0.9, 0.5, 0.3, 0.15, 0.1)] == ["high", "high", "some", "some", "low"]


@pytest.mark.parametrize("seed", range(4))
def test_a_query_is_corrected_to_words_that_its_caller_sees_and_no_tool_is_read_for_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    index, others = SearchIndex(TOOLS, {}), [fake_tool("delta_bench", "A brunch, and its isle", server="GitHub")]
    grown = SearchIndex([*TOOLS[2:], *others], {}, before=index)
    boards = [(index, frozenset(chance.sample(list(TOOLS), chance.randint(0, len(TOOLS))))) for _ in range(20)] + [
        (grown, frozenset(others)),
        (grown, frozenset(TOOLS[2:5])),
    ]
    queries = ("delte brnch", "creat an isue in GitHub", "wether tomorow", "rember this", "delta bench")
    wanted = [[Speller(seen).corrected(query) for query in queries] for _, seen in boards]
    monkeypatch.setattr(speller, "raw_words", None)  # thousands of tools are not gone through at each search

    for (each, seen), meant in zip(boards, wanted, strict=True):
        ids = frozenset(tool.id for tool in seen)
        assert [each.corrected(query, ids) for query in queries] == meant


@pytest.mark.requirement("library.changed-tools")
@pytest.mark.parametrize("seed", range(4))
def test_the_index_of_changed_tools_is_that_of_all_of_them(seed: int) -> None:
    chance = random.Random(seed)
    verbs, things = (
        ("create", "merge", "forecast", "remember"),
        ("issue", "branch", "harbours", "invoice", "heapsnapshot"),
    )
    texts = ("Creates an issue in a repository.", "The weather at harbours, hourly.", "Keeps one fact.", "")
    servers = {name: Server(name=ServerName(name), description=f"All of {name}") for name in ("github", "jira", "sea")}
    tools: dict[ToolId, Tool] = {}
    grown = SearchIndex([], servers)
    for number in range(40):
        name = f"{chance.choice(verbs)}_{chance.choice(things)}" + chance.choice(("", f"_{number}"))
        tool = fake_tool(name, chance.choice(texts), server=chance.choice(sorted(servers)))
        tools[tool.id] = tool
        if chance.random() < 0.4:
            del tools[chance.choice(sorted(tools))]
        if number == 30:
            servers = servers | {"sea": Server(name=ServerName("sea"), description="Tides and winds")}
        listed = chance.sample(list(tools.values()), len(tools)) if number == 20 else list(tools.values())
        grown, anew = SearchIndex(listed, servers, before=grown), SearchIndex(listed, servers)
        best = [
            Candidate(tool=each.id, score=0.1, rank=rank, parts={"cosine": 0.4}) for rank, each in enumerate(listed)
        ]
        for query in ("creat an isue in GitHub", "sea: wether at harbors", "heapsnapshots", "tides"):
            assert grown.corrected(query) == anew.corrected(query)
            assert grown.named(query) == anew.named(query)
            assert grown.signals(query, best) == pytest.approx(anew.signals(query, best))
