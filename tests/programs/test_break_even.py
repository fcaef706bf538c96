from __future__ import annotations

import pytest

from pegboard.programs.break_even import offer, pays_off, program_bill, single_bill
from pegboard.settings.program_settings import ProgramSettings

AUTO = ProgramSettings(mode="auto")


@pytest.mark.requirement("programs.break_even")
@pytest.mark.parametrize("small", [True, False])
def test_at_ten_tools_programs_are_not_offered_unless_the_settings_say_that_tasks_need_many_calls(small: bool) -> None:
    long = AUTO.model_copy(update={"expected_tokens": 20_000.0})

    assert offer(long, tools=10, listed=1_500, small=small).why == "small board"
    assert offer(long, tools=800, listed=1_500, small=False).why == "pays"
    for calls, why in ((1.0, "loses"), (8.0, "pays")):
        said = AUTO.model_copy(update={"expected_calls": calls})
        assert offer(said, tools=10, listed=1_500, small=small).why == why


@pytest.mark.requirement("programs.break_even")
def test_what_is_said_counts_before_what_pays() -> None:
    assert offer(ProgramSettings(mode="on"), tools=3, listed=10, small=True).offered
    assert not offer(ProgramSettings(), tools=800, listed=6_000, small=False).offered


@pytest.mark.requirement("programs.break_even")
def test_more_calls_longer_results_and_more_definitions_speak_for_programs() -> None:
    for listed in (500, 1_500, 6_000):
        gains = [single_bill(calls, 300, listed) - program_bill(listed) for calls in range(1, 20)]
        assert gains == sorted(gains)
    assert not pays_off(1, 200, 1_500)
    assert pays_off(10, 200, 1_500)
    assert single_bill(3, 5_000, 1_500) > single_bill(3, 50, 1_500)
    assert single_bill(3, 50, 6_000) - program_bill(6_000) > single_bill(3, 50, 500) - program_bill(500)
