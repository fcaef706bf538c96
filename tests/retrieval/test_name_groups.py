from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pegboard.retrieval.name_groups import MOST_GROUPS, groups_by_name

part = st.sampled_from(
    ["get", "list", "issue", "issues", "pull", "request", "page", "file", "user", "all", "7", "天气"]
)
tool_names = st.lists(st.lists(part, min_size=1, max_size=4).map("_".join), unique=True, max_size=60)


def groups(names: list[str], server: str = "") -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, label in zip(names, groups_by_name(names, server), strict=True):
        found.setdefault(label, set()).add(name)
    return found


def verbs(noun: str, *more: str) -> set[str]:
    return {f"{verb}_{noun}" for verb in ("create", "get", "delete", *more)}


def test_nouns_make_the_groups_where_verbs_lead() -> None:
    names = [*verbs("issue"), "list_issues", *verbs("branch"), *verbs("pull_request", "merge"), "whoami"]

    assert groups(names) == {
        "issue": verbs("issue") | {"list_issues"},
        "branch": verbs("branch"),
        "pull request": verbs("pull_request", "merge"),
        "": {"whoami"},
    }


def test_first_words_make_the_groups_where_they_are_a_name_space() -> None:
    spaces = {"calendar": ("list_events", "add_event", "event_get"), "mail": ("send_event_invite", "list", "get")}
    names = [f"{space}_{name}" for space, of_space in spaces.items() for name in of_space]

    assert groups(names) == {space: {f"{space}_{name}" for name in of} for space, of in spaces.items()}


def test_a_word_that_all_names_have_makes_no_group() -> None:
    names = [f"browser_{name}" for name in ("tab_open", "tab_close", "tab_list", "cookie_get", "cookie_set", "click")]

    assert set(groups([*names, "browser_cookies_clear"])) == {"tab", "cookie", ""}


def test_a_word_of_the_servers_own_name_groups_only_what_nothing_else_does() -> None:
    names = ["get_chart", "chart_map_add", "chart_map_get", "chart_map_list", "add_chart", "make_pie", "make_bar", "x"]

    assert groups(names, "chart-maker")["chart map"] == {"chart_map_add", "chart_map_get", "chart_map_list"}


def test_a_large_group_is_split_again() -> None:
    verbs = ("add", "get", "list", "move", "close", "drop")
    wide = [f"crm_{verb}_{noun}" for noun in ("lead", "deal", "quote") for verb in verbs]
    names = [*wide, "crm_ping", "crm_login", "crm_logout", *(f"mail_{verb}" for verb in verbs)]

    assert {label: len(of) for label, of in groups(names).items()} == {
        "crm lead": 6,
        "crm deal": 6,
        "crm quote": 6,
        "crm": 3,
        "mail": 6,
    }


def test_names_that_share_nothing_have_no_groups() -> None:
    assert groups(["echo", "add", "print_env"]) == {"": {"echo", "add", "print_env"}}
    assert groups_by_name([]) == ()


@given(tool_names)
def test_every_name_has_a_place_and_groups_are_few(names: list[str]) -> None:
    labels = groups_by_name(names, "page")

    sizes = Counter(filter(None, labels))
    assert len(labels) == len(names)
    assert len(sizes) <= MOST_GROUPS


@given(tool_names, st.integers(0, 100))
def test_groups_do_not_depend_on_the_order_of_the_names(names: list[str], seed: int) -> None:
    shuffled = Random(seed).sample(names, len(names))

    assert groups(names) == groups(shuffled)
