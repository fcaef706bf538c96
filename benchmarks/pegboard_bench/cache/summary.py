"""What the grid comes to: figures by provider, method and case, and every cell in a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, median
from typing import Any

from pegboard_bench.cache.boards import ToolBoard
from pegboard_bench.cache.grid import METHODS, Found, run
from pegboard_bench.cache.providers import MODELS
from pegboard_bench.cache.sessions import Cell

OURS = "hybrid"
RIVALS = ("eager", "naive", "append", "call_tool")
CLOSE = 1.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One cell under one model's rules."""

    cell: Cell
    model: str
    found: Mapping[str, Found]

    @property
    def provider(self) -> str:
        return MODELS[self.model]

    @property
    def case(self) -> str:
        return f"{self.model}-{self.cell.name}"

    def ratio(self, method: str) -> float:
        return self.found[method].bill / self.found["eager"].bill

    def over_cheapest(self, method: str) -> float:
        return self.found[method].bill / min(self.found[each].bill for each in RIVALS)

    def line(self) -> str:
        """The eager bill in tokens of plain input, then each method's share of it."""
        return " ".join(
            [f"{self.found['eager'].bill:.0f}", *(f"{self.ratio(method):.3f}" for method in _others([self]))]
        )


def measured(cell: Cell, model: str, testbed: ToolBoard, seed: int) -> Row:
    return Row(cell=cell, model=model, found=run(cell, testbed, model, seed))


def figures(rows: Sequence[Row]) -> dict[str, float]:
    found: dict[str, float] = {}
    for provider, of_provider in _by(rows, "provider").items():
        found |= _overall(provider, of_provider)
        for method in _others(of_provider):
            for case, cells in _cases(of_provider).items():
                found[f"billed_over_eager/{provider}/{method}/{case}"] = median(row.ratio(method) for row in cells)
        found |= {f"billed_over_eager/{provider}/{OURS}/{row.case}": row.ratio(OURS) for row in of_provider}
    return found


def tables(rows: Sequence[Row]) -> dict[str, Any]:
    """``cells``: by model and cell the line of a row; ``models``: per model what the page shows."""
    return {
        "methods": list(METHODS),
        "models": {model: _of_model(cells) for model, cells in _by(rows, "model").items()},
        "maps": {model: _map(cells) for model, cells in _by(rows, "model").items()},
        "worst": [
            [row.case, round(row.over_cheapest(OURS), 3), round(row.ratio(OURS), 3)]
            for row in sorted(rows, key=lambda row: -row.over_cheapest(OURS))[:12]
        ],
        "cells": {row.case: row.line() for row in rows},
    }


def _overall(provider: str, rows: Sequence[Row]) -> dict[str, float]:
    found = {
        f"worst_billed_over_eager/{provider}": max(row.ratio(OURS) for row in rows),
        f"median_billed_over_eager/{provider}": median(row.ratio(OURS) for row in rows),
        f"worst_billed_over_cheapest/{provider}": max(row.over_cheapest(OURS) for row in rows),
        f"cheapest_within_2_percent/{provider}": fmean(row.over_cheapest(OURS) <= CLOSE for row in rows),
    }
    for method in _others(rows):
        found[f"worst_billed_over_eager/{provider}/{method}"] = max(row.ratio(method) for row in rows)
        found[f"median_billed_over_eager/{provider}/{method}"] = median(row.ratio(method) for row in rows)
        found[f"recall/{provider}/{method}"] = fmean(row.found[method].recall for row in rows)
    return found


def _of_model(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        method: {
            "median": round(median(row.ratio(method) for row in rows), 3),
            "worst": round(max(row.ratio(method) for row in rows), 3),
            "dearer": round(fmean(row.ratio(method) > 1.01 for row in rows), 3),
            "close": round(fmean(row.over_cheapest(method) <= CLOSE for row in rows), 3),
            "recall": round(fmean(row.found[method].recall for row in rows), 3),
            "cells": len(rows),
        }
        for method in (METHODS[0], *_others(rows))
    }


def _others(rows: Sequence[Row]) -> list[str]:
    """The methods besides sending everything that these models know."""
    return [method for method in METHODS[1:] if all(method in row.found for row in rows)]


def _map(rows: Sequence[Row]) -> list[list[Any]]:
    """Medians of ours over eager by testbed, turns, others and news."""
    groups: dict[tuple[str, int, int, float], list[float]] = defaultdict(list)
    for row in rows:
        cell = row.cell
        groups[cell.testbed, cell.turns, cell.others, cell.news].append(row.ratio(OURS))
    return [[*place, round(median(values), 3)] for place, values in groups.items()]


def _cases(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Cells by one value of one axis, as `turns-20`; and by model."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.model].append(row)
        for axis, value in asdict(row.cell).items():
            groups[value if axis == "testbed" else f"{axis}-{value:g}"].append(row)
    return groups


def _by(rows: Sequence[Row], key: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, key)].append(row)
    return groups
