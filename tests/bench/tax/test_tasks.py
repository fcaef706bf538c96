from __future__ import annotations

import re
from collections import Counter

import pytest

from pegboard.model import AgentState, ToolId
from pegboard.routing.eligibility import parse_precondition
from pegboard_bench.tax.tasks import LONG, Task, needs
from pegboard_bench.tax.testbeds import testbed as bed_of
from pegboard_bench.tax.testbeds import there


@pytest.fixture(params=["synthetic", "recorded"])
def bed(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def tasks(bed: str, seed: int = 1, count: int = 100) -> tuple[Task, ...]:
    return bed_of(bed, None).tasks(seed, count)


def test_the_same_seed_draws_the_same_tasks_and_another_seed_others(bed: str) -> None:
    assert tasks(bed) == tasks(bed)
    assert tasks(bed) != tasks(bed, seed=2)


def test_kinds_have_their_shares_and_sessions_their_length(bed: str) -> None:
    drawn = tasks(bed)

    assert Counter(task.kind for task in drawn) == {"single": 40, "multi": 30, "long": 15, "follow_up": 15}
    assert all(LONG[0] <= len(task.steps) <= LONG[1] for task in drawn if task.kind == "long")
    assert all(task.steps[0].said for task in drawn)


def test_what_a_step_needs_is_met_when_it_is_needed(bed: str) -> None:
    for task in tasks(bed):
        for step in task.steps:
            for tool in step.serves:
                assert all(parse_precondition(need)(step.state) for need in needs(tool))


def test_a_request_is_filled_in_and_ends_up_in_what_the_user_says(bed: str) -> None:
    for task in tasks(bed):
        assert not any(re.search(r"[{}\0]", f"{step.said}{step.ask}") for step in task.steps)
        if task.kind in ("single", "multi"):
            assert all(step.ask in str(task.steps[0].said) for step in task.steps)


def test_a_follow_up_needs_the_tool_of_what_it_follows(bed: str) -> None:
    for task in tasks(bed):
        if task.kind == "follow_up":
            assert len({step.serves for step in task.steps}) == 1
            assert len(task.steps) > 1


@pytest.mark.parametrize(
    ("tool", "needed"),
    [
        (ToolId("github", "list_issues"), ()),
        (ToolId("github", "issue_write"), ("is_authenticated:github:write",)),
        (ToolId("database", "drop-index"), ("is_authenticated:database:write", "has_prior_tool_output:connect")),
        (ToolId("web", "browser_find"), ("milestone_reached:page_open",)),
    ],
)
def test_writing_needs_a_right_a_database_a_connection_and_a_browser_a_page(
    tool: ToolId, needed: tuple[str, ...]
) -> None:
    assert needs(tool) == needed
    assert all(not parse_precondition(need)(AgentState()) for need in needed)


def test_without_data_the_made_and_the_recorded_testbeds_are_there() -> None:
    assert there(None) == ("synthetic", "synthetic_47k", "recorded")


def test_recorded_definitions_name_no_place_of_the_machine_they_were_recorded_on() -> None:
    for tool in bed_of("recorded", None).catalog.tools:
        assert not re.search(r"/(home|root|work|tmp|Users)/", f"{tool.description}{tool.definition}")
