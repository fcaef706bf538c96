"""How often a model calls the right tool: fitted to scores that others published, model by model."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from statistics import fmean
from typing import Any

import numpy as np

PLAYS = 200
"""Of each model by each way: twenty tasks, ten times."""
OWN = "minimal-tools"
SEARCH = "copilot"
NAMES = "directory"
MEAN = "mean"
"""The mean of the published models, as if it were one."""
AFTER_SEARCH = 5
"""Tools that a search returns, of which the right one has to be told."""
BY_NAME = 104
"""Names that the directory has, of which the right one has to be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Of one step: ``right`` among two tools, what each doubling of their number takes from it (``less``), how
    often a model that lacks the tool searches for it well enough (``search``), and how often it gets at a tool that it
    lacks and whose name it can read (``named``)."""

    right: float
    less: float
    search: float
    named: float

    def among(self, shown: int) -> float:
        """The chance that the right tool of so many is called.

        >>> round(Rates(right=0.9, less=0.01, search=0.9, named=0.9).among(8), 2)
        0.88
        """
        return min(1.0, max(0.0, self.right - self.less * math.log2(max(shown, 1) / 2)))


@cache
def rates() -> Mapping[str, Rates]:
    """By model, and their mean.

    A task of s steps is done if all are, so that a step's chance is the s-th root of the score, s being the calls a
    task that the model made with exactly the tools needed. ``right`` and ``less`` are the least squares line through
    the four scores without a search, over the logarithm of the number of tools; more tools never help. ``search`` is
    what the score with a search lacks beside that line: misses of that benchmark's own search are in it. ``named`` is
    the same of the score with a directory of all names.
    """
    said = _said()
    models: Mapping[str, Any] = said["model"]
    scores = {name: each["score"] for name, each in published().items()}
    mean = {"calls": fmean(model["calls"] for model in models.values()), "score": scores}
    return {name: _fitted(each, said["tools"]) for name, each in {MEAN: mean, **models}.items()}


def published() -> dict[str, dict[str, float]]:
    """By the benchmark's own name of a way, the mean ``score`` of the models and their ``tokens`` a play."""
    said = _said()
    names = (OWN, *said["tools"], SEARCH, NAMES)
    scores = {name: fmean(model["score"][name] for model in said["model"].values()) for name in names}
    return {name: {"score": score, "tokens": said["tokens"][name]} for name, score in scores.items()}


def _said() -> dict[str, Any]:
    return tomllib.loads((files("pegboard_bench.whole_tasks") / "published_scores.toml").read_text("utf-8"))


def _fitted(model: Mapping[str, Any], tools: Mapping[str, int]) -> Rates:
    steps = model["calls"] / PLAYS
    chance = {name: score ** (1 / steps) for name, score in model["score"].items()}
    doublings = np.log2([steps, *tools.values()]) - 1
    slope, right = np.polyfit(doublings, [chance[OWN], *(chance[name] for name in tools)], 1)
    level, less = float(right), max(0.0, -float(slope))
    if slope > 0:
        level = fmean([chance[OWN], *(chance[name] for name in tools)])
    line = Rates(right=level, less=less, search=1.0, named=1.0)
    return replace(
        line,
        search=min(1.0, chance[SEARCH] / line.among(AFTER_SEARCH)),
        named=min(1.0, chance[NAMES] / line.among(BY_NAME)),
    )
