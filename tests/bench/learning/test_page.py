from __future__ import annotations

from pegboard_bench.learning.page import METHODS, METRICS, section

RESULTS = {
    "command": "make bench-gate",
    "date": "2026-01-02T03:04:05+00:00",
    "commit": "0123456789abcdef",
    "machine": {"cores": 2, "cpu": "a CPU", "python": "3.11"},
    "figures": {
        f"{metric}/{name}/{method}": 0.25 for metric in METRICS for name in ("own", "other") for method in METHODS
    }
    | {f"{metric}/other/shipped": 0.5 for metric in METRICS}
    | {f"{metric}/other/calibrated": 0.75 for metric in METRICS},
    "tables": {
        "hidden_units": 32,
        "held_out": {"own": 300},
        "scored": {"other": 40},
        "calibrated": {"other": {"kept": "old"}},
    },
}


def test_every_set_stands_under_every_gate_and_the_scored_ones_before_and_after() -> None:
    text = section(RESULTS)

    assert "| own | 0.250 / 0.250 | 0.250 / 0.250 | 0.250 / 0.250 |" in text
    assert "| other | 0.250 / 0.250 |" in text
    assert "| other | 40 | 0.500 → 0.750 | 0.500 → 0.750 | 0.500 → 0.750 | old |" in text
    assert "| own | 300" not in text
