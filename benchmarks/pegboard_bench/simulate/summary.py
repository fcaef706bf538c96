"""What the grid comes to: figures by policy, tables with intervals, and what is compared in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from pegboard.evaluation.ranking_metrics import Interval
from pegboard_bench.simulate.cut import kept
from pegboard_bench.simulate.measures import METRICS, scale, values
from pegboard_bench.simulate.run import MEASURES, SETS, Asked, Cell, Played
from pegboard_bench.simulate.spread import Resampled, change, interval
from pegboard_bench.simulate.tasks import TASK

RIVAL = "rag_mcp"
ORDER = "order"
CURVES = {"tokens": "tokens", "cost_usd": "cost_usd"}
POINTS = 32
"""Of a cumulative curve, at most."""

DIFFERENCES = ("utility", "mrr", "recall@3", "success_points")
PAIRS: Mapping[str, tuple[str, str]] = {
    "ehrr_over_rag_mcp": ("ehrr", "rag_mcp"),
    "ehrr_over_rag_mcp_task_text": ("ehrr", "rag_mcp_task_text"),
    "rag_mcp_over_rag_mcp_task_text": ("rag_mcp", "rag_mcp_task_text"),
    "hybrid_over_rag_mcp": ("hybrid", "rag_mcp"),
    "hybrid_over_ehrr": ("hybrid", "ehrr"),
    "hybrid_economics_over_hybrid": ("hybrid_economics", "hybrid"),
    "hybrid_economics_over_ehrr": ("hybrid_economics", "ehrr"),
    "no_cut_over_cut_similarity": ("rag_mcp_flat", "rag_mcp"),
    "no_cut_over_cut_ehrr": ("ehrr_no_hierarchy", "ehrr"),
    "no_cut_over_cut_hybrid": ("hybrid", "hybrid_cut"),
}
COMPARED = ("success", "invalid_calls", "tokens", "cost_usd")
"""By how many hundredths they change."""

Table = dict[str, list[float]]
"""Metric to mean, low and high."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """All cells played, over the same worlds; ``asked`` and ``seed`` are those of the run."""

    found: Mapping[Cell, Played]
    asked: Mapping[str, Asked]
    seed: int

    def figures(self) -> dict[str, float]:
        figures: dict[str, float] = {}
        for cell, played in self.found.items():
            as_it_is = Resampled(self._worlds(cell), self._tasks(cell), self.seed, resamples=0)
            for policy, metric in product([name for name in played if name != ORDER], METRICS):
                value = values(played[policy][:, 0], metric, as_it_is)[0] * scale(metric, self._tasks(cell))
                figures[f"{metric}/{policy}{_suffix(cell)}"] = float(value)
        for asked, shares in self._kept().items():
            figures |= {f"{name}/{asked}": share for name, share in shares.items()}
        return figures

    def tables(self) -> dict[str, Any]:
        heads = {asked: self.headline(asked) for asked in SETS}
        last = {asked: cell.passes - 1 for asked, cell in heads.items()}
        several = {asked: cell for asked in SETS if (cell := self.several(asked)) is not None}
        return {
            "worlds": next(iter(self.found.values()))[RIVAL].shape[0],
            "tasks": {asked: len(each.queries) for asked, each in self.asked.items()},
            "passes": {asked: number + 1 for asked, number in last.items()},
            "policies": {asked: self.policies(cell) for asked, cell in heads.items()},
            "categories": {asked: self.categories(cell) for asked, cell in heads.items()},
            "learnt": {asked: self.policies(cell, turn=last[asked]) for asked, cell in heads.items()},
            "several": {asked: self.policies(cell) for asked, cell in several.items()},
            "several_learnt": {asked: self.policies(cell, turn=cell.passes - 1) for asked, cell in several.items()},
            "pairs": {_label(cell): self.pairs(cell) for cell in self.found},
            "pairs_learnt": {
                _label(cell): self.pairs(cell, turn=cell.passes - 1) for cell in self.found if cell.passes > 1
            },
            "grid": {_label(cell): self.policies(cell, only=("success", "cost_usd", "mrr")) for cell in self.found},
            "curves": {asked: self.curves(cell) for asked, cell in heads.items()},
            "kept": self._kept(),
        }

    def headline(self, asked: str) -> Cell:
        """The worlds as they are drawn, with one of each server."""
        return next(cell for cell in self.found if (cell.asked, cell.heterogeneity, cell.copies) == (asked, 1.0, 1))

    def several(self, asked: str) -> Cell | None:
        """The same with several copies of each server, where that was played."""
        found = [cell for cell in self.found if cell.asked == asked and cell.heterogeneity == 1 and cell.copies > 1]
        return found[0] if found else None

    def policies(self, cell: Cell, *, turn: int = 0, only: Sequence[str] = tuple(METRICS)) -> dict[str, Table]:
        resampled, size = self._resampled(cell), self._tasks(cell)
        return {
            policy: {
                metric: _rounded(interval(values(played[:, turn], metric, resampled) * scale(metric, size)))
                for metric in only
            }
            for policy, played in self.found[cell].items()
            if policy != ORDER
        }

    def categories(self, cell: Cell) -> dict[str, dict[str, Table]]:
        """By category and policy, with the number of tasks under the name of the category."""
        names = np.array([query.category for query in self.asked[cell.asked].queries])
        found = {}
        for name in sorted(set(names)):
            of = names == name
            resampled = Resampled(self._worlds(cell), int(of.sum()), self.seed)
            found[f"{name} ({of.sum()})"] = {
                policy: {
                    metric: _rounded(interval(values(played[:, 0, of], metric, resampled) * scale(metric, of.sum())))
                    for metric in METRICS
                }
                for policy, played in self.found[cell].items()
                if policy != ORDER
            }
        return found

    def pairs(self, cell: Cell, *, turn: int = 0) -> dict[str, Table]:
        """By how much the first of a pair differs: a change of `COMPARED`, a difference of `DIFFERENCES`."""
        resampled, played = self._resampled(cell), self.found[cell]
        found: dict[str, Table] = {}
        for name, (ours, theirs) in PAIRS.items():
            if ours not in played or theirs not in played:
                continue
            both = {
                metric: tuple(values(played[each][:, turn], metric, resampled) for each in (ours, theirs))
                for metric in METRICS
            }
            found[name] = {metric: _rounded(interval(change(*both[metric]))) for metric in COMPARED}
            points = both | {"success_points": both["success"]}
            found[name] |= {metric: _rounded(interval(points[metric][0] - points[metric][1])) for metric in DIFFERENCES}
        return found

    def curves(self, cell: Cell) -> dict[str, dict[str, list[float]]]:
        """Sums of a measure over the tasks as they come, in the mean of the worlds, by measure and policy."""
        played, size = self.found[cell], self._tasks(cell)
        shown = np.unique(np.linspace(0, size - 1, min(POINTS, size)).round().astype(int))
        order = played[ORDER][:, 0].astype(int)
        found: dict[str, dict[str, list[float]]] = {"task": {"number": (shown + 1).tolist()}}
        for name, measure in CURVES.items():
            place = MEASURES.index(measure)
            found[name] = {
                policy: np.take_along_axis(of[:, 0, :, place], order, axis=1)
                .cumsum(axis=1)
                .mean(axis=0)[shown]
                .round(4)
                .tolist()
                for policy, of in played.items()
                if policy != ORDER
            }
        return found

    def _kept(self) -> dict[str, dict[str, float]]:
        return {asked: kept(each) for asked, each in self.asked.items()}

    def _worlds(self, cell: Cell) -> int:
        return int(self.found[cell][RIVAL].shape[0])

    def _tasks(self, cell: Cell) -> int:
        return len(self.asked[cell.asked].queries)

    def _resampled(self, cell: Cell) -> Resampled:
        return Resampled(self._worlds(cell), self._tasks(cell), self.seed)


def _rounded(each: Interval) -> list[float]:
    return [round(value, 5) for value in (each.mean, each.low, each.high)]


def _suffix(cell: Cell) -> str:
    """After the name of a policy: nothing for the headline on tasks."""
    at = "" if (cell.heterogeneity, cell.copies) == (1.0, 1) else f"/h{cell.heterogeneity:g}-copies{cell.copies}"
    return f"{'' if SETS[cell.asked] is TASK else f'/{cell.asked}'}{at}"


def _label(cell: Cell) -> str:
    return f"{cell.asked}/h{cell.heterogeneity:g}/copies{cell.copies}"
