"""LangChain's own tests with our middleware: which failures are new, and what is said of each."""

from __future__ import annotations

from pegboard_bench.langchain_own.__main__ import compared
from pegboard_bench.langchain_own.page import section
from pegboard_bench.langchain_own.reasons import REASONS, reason_of

PASSED = {"outcome": "passed", "said": ""}
FAILED = {"outcome": "failed", "said": "assert 0 == 1\nmore"}


def test_what_fails_without_us_or_with_any_middleware_is_told_from_what_is_ours() -> None:
    runs = {
        "nothing": {"always": FAILED, "any": PASSED, "ours": PASSED, "fine": PASSED},
        "idle": {"always": FAILED, "any": FAILED, "ours": PASSED, "fine": PASSED},
        "pegboard": {"always": FAILED, "any": FAILED, "ours": FAILED, "fine": PASSED},
    }

    figures, rows = compared(runs)

    assert [(row["test"], row["reason"], row["said"]) for row in rows] == [
        ("any", "any", "assert 0 == 1"),
        ("ours", "", "assert 0 == 1"),
    ]
    assert figures == {
        "tests": 4,
        "new": 2,
        "new/any": 1,
        "new/unexplained": 1,
        "failed/nothing": 1,
        "failed/idle": 2,
        "failed/pegboard": 3,
    }


def test_a_reason_is_given_only_where_it_is_known() -> None:
    assert reason_of("test_unknown_tool_raises_error", "Failed: DID NOT RAISE ValueError") == "refused"
    assert reason_of("test_other", "Failed: DID NOT RAISE ValueError") == ""


def test_the_section_lists_each_new_failure_under_its_reason() -> None:
    rows = [
        {"test": "core/test_a.py::test_one", "reason": "any", "said": ""},
        {"test": "core/test_b.py::test_two", "reason": "", "said": ""},
    ]
    said = section(
        {
            "command": "make test-langchain-own",
            "date": "2026-11-25",
            "commit": "0" * 40,
            "machine": {"cores": 2, "cpu": "some", "python": "3.11"},
            "figures": {
                "tests": 4,
                "new": 2,
                "new/any": 1,
                "new/unexplained": 1,
                "failed/nothing": 1,
                "failed/idle": 2,
                "failed/pegboard": 3,
            },
            "tables": {"langchain": "1.5.2", "new": rows},
        }
    )

    assert f"**1.** {REASONS['any']}\n\n- `core/test_a.py::test_one`" in said
    assert "The reason is not known.\n\n- `core/test_b.py::test_two`" in said
    assert "| ours | 3 |" in said
