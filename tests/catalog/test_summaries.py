from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.catalog import BpeCounter, summarize
from pegboard.testing import fake_tool

COUNTER = BpeCounter()


@pytest.mark.requirement("000.summary")
def test_a_summary_is_the_name_and_the_description_on_one_line() -> None:
    assert (
        summarize(fake_tool("renew_loan", "Extend\n  the due date.\t"), COUNTER) == "renew_loan: Extend the due date."
    )


@pytest.mark.requirement("000.summary")
@given(name=st.text(min_size=1, max_size=300), description=st.text(max_size=800))
def test_a_summary_never_exceeds_sixty_tokens(name: str, description: str) -> None:
    summary = summarize(fake_tool(name, description), COUNTER)

    assert COUNTER.count([summary])[0] <= 60


@pytest.mark.requirement("000.summary")
def test_a_long_description_is_cut_behind_the_name() -> None:
    summary = summarize(fake_tool("renew_loan", "Extend the due date of a borrowed book. " * 40), COUNTER)

    assert summary.startswith("renew_loan: Extend the due date")
    assert 50 < COUNTER.count([summary])[0] <= 60


@pytest.mark.requirement("P16")
def test_a_tool_without_a_description_is_summarized_by_its_name() -> None:
    assert summarize(fake_tool("renew_loan", "  "), COUNTER) == "renew_loan"
