from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.model import Floats, Tool
from pegboard.retrieval import duplicates
from pegboard.retrieval.duplicates import BLOCK, SAME_NAME, SIMILAR_NAME, Duplicates, duplicate_groups
from pegboard.retrieval.slots import kept_places
from pegboard.testing import fake_tool

NEARLY = (1 + SIMILAR_NAME) / 2
ALIKE = (SAME_NAME + SIMILAR_NAME) / 2


def tool(identity: str, description: str = "Does it.") -> Tool:
    server, name = identity.split("/")
    return fake_tool(name, description, server=server)


def with_cosine(cosine: float) -> Floats:
    """Two unit vectors of this cosine."""
    return np.array([[1, 0], [cosine, np.sqrt(1 - cosine**2)]], np.float32)


def paired(one: str, other: str, cosine: float) -> bool:
    first, second = duplicate_groups([tool(one), tool(other)], with_cosine(cosine))
    return bool(first == second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("files/read_file", "desktop/readFile"),
        ("playwright/playwright_click", "puppeteer/puppeteer_click"),
        ("tracker/create_task", "todo/add_task"),
        ("net/fetch-url", "web/get_url"),
    ],
)
def test_the_same_name_on_two_servers_is_one_job_where_the_descriptions_are_alike(one: str, other: str) -> None:
    assert paired(one, other, ALIKE)
    assert not paired(one, other, SAME_NAME - 0.05)


def test_names_that_share_half_of_their_words_need_descriptions_that_are_nearly_the_same() -> None:
    assert paired("tracker/get_task_by_id", "todo/get_task", NEARLY)
    assert not paired("tracker/get_task_by_id", "todo/get_task", ALIKE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("github/create_review", "forge/list_reviews"),
        ("tracker/delete_task", "todo/create_task"),
        ("maps/geocode", "billing/refund"),
    ],
)
def test_names_that_say_something_else_are_two_jobs_whatever_their_descriptions(one: str, other: str) -> None:
    assert not paired(one, other, 0.999)


def test_tools_of_one_server_are_never_duplicates_of_each_other() -> None:
    assert not paired("files/read_file", "files/readFile", 0.999)


def test_a_tool_without_a_description_is_like_no_other() -> None:
    groups = duplicate_groups([tool("one/search", ""), tool("two/search", " ")], with_cosine(0.999))

    assert groups.tolist() == [0, 1]


def test_names_without_words_are_like_no_other() -> None:
    assert not paired("one/_", "two/_", 0.999)


def test_a_group_is_named_by_its_first_tool_and_takes_one_of_a_server_the_nearest() -> None:
    tools = [tool("a/list_issues"), tool("b/lists_issue"), tool("c/list_issues"), tool("c/listIssues")]
    near = np.eye(4, dtype=np.float32)
    near[3] = [0.9, 0, 0, np.sqrt(1 - 0.81)]
    near[2] = [0.95, 0, np.sqrt(1 - 0.95**2), 0]

    assert duplicate_groups(tools, near).tolist() == [0, 1, 0, 3]


def test_what_is_like_two_tools_that_are_unlike_joins_only_the_nearer() -> None:
    angles = np.radians([0, 40, 75])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    assert duplicate_groups([tool(f"{server}/list_issues") for server in "abc"], vectors).tolist() == [0, 1, 1]


def test_no_tools_have_no_groups() -> None:
    assert duplicate_groups([], np.zeros((0, 8), np.float32)).tolist() == []


def test_a_pair_is_found_however_far_apart_it_stands() -> None:
    generator = np.random.default_rng(1)
    size = 2 * BLOCK + 100
    tools = [tool(f"s{place}/do{place}") for place in range(size)]
    vectors = generator.normal(size=(size, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for one, other in ((3, 2 * BLOCK + 50), (BLOCK - 1, BLOCK), (BLOCK + 5, BLOCK + 9)):
        tools[other] = tool(f"s{other}/do{one}")
        vectors[other] = vectors[one]

    groups = duplicate_groups(tools, vectors)

    assert {(int(group), place) for place, group in enumerate(groups) if group != place} == {
        (3, 2 * BLOCK + 50),
        (BLOCK - 1, BLOCK),
        (BLOCK + 5, BLOCK + 9),
    }


NAMES = ("read_file", "get_file", "list_files", "search", "read_text_file")
boards = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(NAMES), st.integers(0, 5)), max_size=20, unique=True)


def built(rows: Sequence[tuple[int, str, int]]) -> tuple[list[Tool], Floats]:
    generator = np.random.default_rng(7)
    directions = generator.normal(size=(6, 8)) + 1
    vectors = np.array([directions[row[2]] for row in rows], np.float32).reshape(len(rows), 8)
    tools = [tool(f"server{server}/{name}_v{kind}") for server, name, kind in rows]
    return tools, vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


@given(boards)
def test_every_two_of_a_group_are_alike_and_of_different_servers(rows: list[tuple[int, str, int]]) -> None:
    tools, vectors = built(rows)
    groups = duplicate_groups(tools, vectors)

    assert all(groups[group] == group <= place for place, group in enumerate(groups.tolist()))
    for one, other in combinations(range(len(tools)), 2):
        if groups[one] == groups[other]:
            assert tools[one].server != tools[other].server
            assert vectors[one] @ vectors[other] >= SAME_NAME


@given(boards)
def test_groups_do_not_depend_on_how_many_rows_are_looked_at_together(rows: list[tuple[int, str, int]]) -> None:
    tools, vectors = built(rows)
    whole = duplicate_groups(tools, vectors)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duplicates, "BLOCK", 3)
        assert duplicate_groups(tools, vectors).tolist() == whole.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_groups_that_changed_with_the_catalog_are_those_of_the_changed_catalog(seed: int) -> None:
    chance, numbers = random.Random(seed), np.random.default_rng(seed)
    centres = numbers.standard_normal((3, 16))
    board: dict[str, tuple[Tool, Floats]] = {}

    def come() -> None:
        verb, about = chance.choice(("create", "add", "list")), chance.choice(("issue", "ticket", "issue_list"))
        vector = centres[chance.randrange(3)] + 0.3 * numbers.standard_normal(16)
        new = tool(f"s{chance.randrange(8)}/{verb}_{about}")
        board.setdefault(str(new.id), (new, np.asarray(vector / np.linalg.norm(vector), np.float32)))

    def listed() -> tuple[list[Tool], Floats]:
        rows = [board[name] for name in sorted(board)]
        return [row[0] for row in rows], np.stack([row[1] for row in rows])

    for _ in range(40):
        come()
    tools, vectors = listed()
    found = Duplicates.among(tools, vectors)
    for _ in range(20):
        before = tools
        for _ in range(chance.randint(1, 3)):
            if chance.random() < 0.5:
                del board[chance.choice(sorted(board))]
            come()
        tools, vectors = listed()
        found = found.changed(kept_places(before, tools), tools, vectors)
        assert found.groups.tolist() == duplicate_groups(tools, vectors).tolist()
