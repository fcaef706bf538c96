"""The figures of agents behind adapters, and their section."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard_bench.adapters.outcome import failed_parts, figures_of
from pegboard_bench.adapters.page import section

FOUND: dict[str, Any] = {
    "twenty_turns": {"turns": 20, "offered": 20, "largest": 9, "ended": 20},
    "gate": {"shown": False, "ran": [], "result": '{"error": "tool_not_available"}', "said": "done"},
    "way_back": {
        "offered": [True, True, True],
        "found": [False, True, True],
        "ran": ["translate_telescope"],
        "said": "done",
    },
    "parallel": {"requests": 200, "leaks": 0, "not_ended": 0, "errors": [], "deleted_unshown": 0, "ran": 210},
    "streaming": {
        "said": "done",
        "parts": ["do", "ne"],
        "ran": ["get_calendar_event"],
        "offered": True,
        "largest": 9,
    },
    "several_agents": {"control": ["handoff"], "said": "done", "ran": ["get_contract"], "largest": 4, "offered": True},
    "added_time": {
        "processor_ms": 1.5,
        "processor_ms_rounds": [1.4, 2.25],
        "wall_ms": [1.5, 1.75, 2.5],
        "turns": 300,
    },
}


def test_what_an_agent_did_right_is_counted() -> None:
    figures = figures_of("strands", FOUND)

    yes = {name for name, value in figures.items() if value == 1.0}
    assert yes == {"gated/strands", "found/strands", "streamed/strands", "handed_over/strands"}
    assert (figures["offered/strands"], figures["leaks/strands"], figures["errors/strands"]) == (20, 0, 0)
    assert (figures["processor_ms/strands"], figures["wall_ms/strands"]) == (1.5, 1.75)


@pytest.mark.parametrize(
    ("part", "said", "figure", "value"),
    [
        ("gate", {"ran": ["delete_telescope"]}, "gated", 0.0),
        ("gate", {"result": "ok"}, "gated", 0.0),
        ("way_back", {"found": [True, True]}, "found", 0.0),
        ("streaming", {"parts": ["done"]}, "streamed", 0.0),
        ("several_agents", {"control": []}, "handed_over", 0.0),
        ("parallel", {"leaks": 3, "deleted_unshown": 2}, "leaks", 5.0),
        ("parallel", {"errors": ["KeyError"], "not_ended": 2}, "errors", 3.0),
    ],
)
def test_what_an_agent_did_wrong_is_counted(part: str, said: dict[str, Any], figure: str, value: float) -> None:
    assert figures_of("strands", FOUND | {part: FOUND[part] | said})[f"{figure}/strands"] == value


def test_a_part_that_raised_has_nothing_right() -> None:
    raised = FOUND | {"parallel": {"failed": "Traceback\n  x\nKeyError: 'id'\n"}, "gate": {"failed": "a\nb"}}

    figures = figures_of("strands", raised)

    assert (figures["errors/strands"], figures["requests/strands"], figures["gated/strands"]) == (1, 0, 0)
    assert failed_parts(raised) == {"parallel": "KeyError: 'id'", "gate": "b"}


def test_the_section_has_a_row_of_each_framework_and_says_what_failed() -> None:
    page = section(
        {
            "command": "make bench-adapters",
            "date": "2026-11-24T20:00:00+00:00",
            "commit": "0123456789abcdef",
            "machine": {"cores": 2, "cpu": "a processor", "python": "3.11"},
            "figures": {"frameworks": 1.0, "tools": 200.0, **figures_of("strands", FOUND)},
            "tables": {
                "frameworks": {
                    "strands": {
                        "release": "strands-agents==1.62.0",
                        "load_before": 3.25,
                        "failed": {"gate": "KeyError"},
                        "added_time": FOUND["added_time"],
                    }
                }
            },
        }
    )

    assert "| strands-agents 1.62.0 | 20 of 20 | 9 | yes | yes | yes | yes | 0 | 0 |" in page
    assert "| strands | 1.5 | 1.4 to 2.2 | 1.8 | 1.5 to 2.5 | 3.2 |" in page
    assert "1 of 1 adapters met it" in page
    assert "- strands, gate: `KeyError`" in page
