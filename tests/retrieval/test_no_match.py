"""The probability that anything on a board fits a search."""

from __future__ import annotations

import pytest

from pegboard.model import Candidate, Server, ServerName
from pegboard.retrieval.no_match import SIGNALS, NoMatch, shipped
from pegboard.retrieval.search_index import SearchIndex
from pegboard.testing import fake_tool

KNOWN = NoMatch(
    intercept=0.0,
    weights=dict.fromkeys(SIGNALS, 0.0),
    least=0.2,
    services=frozenset({"discord", "slack", "mongo", "k8s", "google drive"}),
)
SLACK = {"slack", "post", "message"}


def test_the_shipped_model_has_a_weight_for_every_signal_and_a_bound() -> None:
    assert set(shipped().weights) == set(SIGNALS)
    assert 0 < shipped().least < 0.5
    assert {"jira", "spotify", "trello"} <= shipped().services


def test_what_is_closer_in_meaning_or_of_the_named_service_fits_more_likely() -> None:
    plain = dict.fromkeys(SIGNALS, 0.5) | {"absent": 0.0}

    assert shipped().chance(plain | {"cosine": 0.8}) > shipped().chance(plain | {"cosine": 0.2})
    assert shipped().chance(plain | {"absent": 1.0}) < shipped().chance(plain)
    assert KNOWN.chance(plain) == 0.5


@pytest.mark.parametrize(
    ("query", "missing"),
    [
        ("send a message", 0.0),
        ("slack send message", 0.0),
        ("discord send message", 1.0),
        ("from slack to discord", 0.5),
        ("jira: post a message", 1.0),
        ("slack: post a message", 0.0),
    ],
)
def test_a_named_service_is_absent_if_no_tool_says_its_name(query: str, missing: float) -> None:
    assert KNOWN.absent(query, [{"other"}, SLACK]) == missing


def test_a_short_form_of_a_services_name_is_no_other_service() -> None:
    assert KNOWN.absent("mongo insert", [{"mongodb", "insert"}]) == 0.0
    assert KNOWN.absent("k8s get pods", [{"kubernetes", "get"}]) == 0.0
    assert KNOWN.absent("discord", []) == 1.0


def test_a_service_may_have_a_name_of_two_ordinary_words_beside_each_other() -> None:
    assert KNOWN.absent("google drive search", [{"search", "files"}]) == 1.0
    assert KNOWN.absent("google drive search", [{"google", "drive", "search"}]) == 0.0
    assert KNOWN.absent("drive to google", [{"search", "files"}]) == 0.0


def test_a_search_for_a_service_that_the_board_lacks_fits_less() -> None:
    tool = fake_tool("slack_post_message", "Post a message to a channel.", server="slack")
    index = SearchIndex([tool], {"slack": Server(name=ServerName("slack"))}, shipped())
    best = [Candidate(tool=tool.id, score=0.5, rank=0, parts={"cosine": 0.45, "name": 0.2})]

    assert index.signals("slack post message", best)["absent"] == 0
    assert index.chance("discord post message", best) < index.chance("slack post message", best)
