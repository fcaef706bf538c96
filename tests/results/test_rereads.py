from __future__ import annotations

import pytest

from pegboard.model import ToolId
from pegboard.results.rereads import GRACE, HALF_LIFE, Rereads
from pegboard.testing import FakeClock

TOOL = ToolId("github", "list_issues")


@pytest.mark.requirement("results.learnt")
def test_a_tool_is_left_whole_while_reading_on_has_cost_more_and_is_tried_again_later(clock: FakeClock) -> None:
    rereads = Rereads(clock)
    assert rereads.pays(TOOL)
    rereads.saved(TOOL, 20_000)
    rereads.read(TOOL, 10_000)
    assert rereads.pays(TOOL)

    rereads.read(TOOL, 10_000 + 2 * GRACE)
    assert not rereads.pays(TOOL)
    assert rereads.pays(ToolId("github", "get_issue"))

    clock.advance(3 * HALF_LIFE)
    assert rereads.pays(TOOL)


def test_what_is_read_now_and_then_costs_less_than_what_is_saved_each_time(clock: FakeClock) -> None:
    rereads = Rereads(clock)
    for _ in range(100):
        for _ in range(3):
            rereads.saved(TOOL, 8_000)
        rereads.read(TOOL, 10_000)

    assert rereads.pays(TOOL)
