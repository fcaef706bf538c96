"""`gate.json` as a section of the page of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench import results as files

METHODS = {
    "linear": "linear fusion",
    "mlp_gate": "MLP on the same parts",
    "mlp_embeddings": "MLP on query and tool vectors",
}
METRICS = {"recall@5": "recall@5", "log_loss": "log loss, nats", "ece": "calibration error"}


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    return "\n".join(
        [
            "## Learning: a neural gate, and a board's own requests\n",
            f"Written by `{results['command']}`. {files.measured(results)}.\n",
            "Tool Attention, section 8, proposes a 2-layer MLP in place of the threshold. Fitted on what the fusion is "
            f"fitted on, {tables['hidden_units']} hidden units. The first {len(tables['held_out'])} sets are those: "
            "each query is judged by a fit on the other folds. Recall@5 / calibration error of the 20 best tools:\n",
            *_gates(results["figures"], [*tables["held_out"], *tables["scored"]]),
            "\nWhat `pegboard calibrate` makes of a set's own queries, on those that a fit has not seen "
            "([calibration](calibration.md)). Before → after, and whether the new fusion is kept:\n",
            *_calibrated(results["figures"], tables),
            "",
        ]
    )


def _gates(figures: Mapping[str, float], sets: list[str]) -> list[str]:
    rows = [
        [
            name,
            *(
                f"{figures[f'recall@5/{name}/{method}']:.3f} / {figures[f'ece/{name}/{method}']:.3f}"
                for method in METHODS
            ),
        ]
        for name in sets
    ]
    return _table(["set", *METHODS.values()], rows)


def _calibrated(figures: Mapping[str, float], tables: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, queries in tables["scored"].items():
        moved = (
            f"{figures[f'{metric}/{name}/shipped']:.3f} → {figures[f'{metric}/{name}/calibrated']:.3f}"
            for metric in METRICS
        )
        rows.append([name, str(queries), *moved, tables["calibrated"][name]["kept"]])
    return _table(["set", "queries", *METRICS.values(), "kept"], rows)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
