from __future__ import annotations

import pytest

from pegboard.catalog import Catalog
from pegboard.programs.program_run import ProgramCall, ProgramRun, program_text

COUNTER = Catalog.build([]).counter


@pytest.mark.requirement("programs.sandbox")
def test_only_what_was_printed_and_the_last_value_is_said() -> None:
    run = ProgramRun(outcome="ok", printed="one\ntwo\n", value="3", calls=(ProgramCall(tool="find", line=1),))

    assert program_text(run, 100, COUNTER) == "one\ntwo\n3"
    assert program_text(ProgramRun(outcome="ok"), 100, COUNTER) == "(nothing was printed)"


@pytest.mark.requirement("programs.readable")
def test_a_failed_program_says_what_it_printed_where_it_ended_and_which_calls_were_made() -> None:
    calls = (
        *(ProgramCall(tool="find", line=2) for _ in range(3)),
        ProgramCall(tool="move", line=3, problem="no room"),
        ProgramCall(tool="move", line=4, finished=False),
    )
    run = ProgramRun(outcome="failed", printed="so far\n", problem="The program failed.", calls=calls)

    assert program_text(run, 100, COUNTER).splitlines() == [
        "so far",
        "The program failed.",
        "5 calls were made:",
        "  line 2: find succeeded (3 times)",
        "  line 3: move failed: no room",
        "  line 4: move was cancelled",
    ]


def test_what_was_printed_is_cut_to_its_budget_and_says_so() -> None:
    text = program_text(ProgramRun(outcome="ok", printed="word " * 5_000), 50, COUNTER)

    assert COUNTER.count([text])[0] < 80
    assert text.endswith("characters more were printed: print less]")
