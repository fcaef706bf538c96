"""Figures and tables of plays: success, tokens, bills, differences that are paired over tasks and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard_bench.whole_tasks import bills
from pegboard_bench.whole_tasks.play import Played
from pegboard_bench.whole_tasks.run import Plays

SEED, DRAWS = 20261124, 2000
ORACLE, ALL = "oracle", "all"
Values = NDArray[np.float64]


def figures(plays: Plays) -> dict[str, float]:
    """By method and board: `success/METHOD/BOARD` and the like; without a board, over both."""
    found: dict[str, float] = {}
    for board, methods in plays.items():
        for method, seeds in methods.items():
            found |= {_name(name, method, board): value for name, value in _of(seeds, methods).items()}
    for method in next(iter(plays.values()), {}):
        for name in ("success", "tokens"):
            parts = [found[f"{name}/{method}/{board}"] for board in plays if method in plays[board]]
            found[f"{name}/{method}"] = fmean(parts)
        for model in bills.MODELS:
            name = f"billed_over_all/{method}"
            boards = [board for board in plays if f"{name}/{model}/{board}" in found]
            if boards:
                found[f"{name}/{model}"] = fmean(found[f"{name}/{model}/{board}"] for board in boards)
    return found


def tables(plays: Plays) -> dict[str, Any]:
    """Every play that failed where the oracle's tools did not, and how many misses of each kind there were."""
    return {
        "losses": {
            board: {method: _losses(seeds, methods[ORACLE]) for method, seeds in methods.items() if method != ORACLE}
            for board, methods in plays.items()
            if ORACLE in methods
        },
        "misses": {
            board: {method: _misses(_all(seeds)) for method, seeds in methods.items()}
            for board, methods in plays.items()
        },
        "plays": {
            board: {method: len(_all(seeds)) for method, seeds in methods.items()} for board, methods in plays.items()
        },
    }


def _of(
    seeds: Mapping[int, Sequence[Played]], methods: Mapping[str, Mapping[int, Sequence[Played]]]
) -> dict[str, float]:
    plays = _all(seeds)
    done = _done(plays)
    low, high = _interval(done, seeds)
    figures = {
        "success": float(done.mean()),
        "success_low": low,
        "success_high": high,
        "tokens": fmean(play["tokens"] for play in plays),
        "requests": fmean(len(play["kept"]["sent"]) + len(play["kept"]["aside"]) for play in plays),
        "seconds": median(play["seconds"] for play in plays),
    }
    for other in (ORACLE, ALL):
        if other in methods:
            against = _all(methods[other])
            difference = done - _done(against)
            low, high = _interval(difference, seeds)
            figures |= {
                f"success_minus_{other}": float(difference.mean()),
                f"success_minus_{other}_low": low,
                f"success_minus_{other}_high": high,
                f"tokens_over_{other}": figures["tokens"] / fmean(play["tokens"] for play in against),
            }
    named = {}
    if ALL in methods:
        for model in bills.MODELS:
            bill, whole = (fmean(bills.bills(each, model)) for each in (seeds, methods[ALL]))
            named[model] = bill / whole
    return figures | {f"billed_over_all/{model}": value for model, value in named.items()}


def _name(figure: str, method: str, board: str) -> str:
    """What is measured, of what, under which conditions."""
    what, _, more = figure.partition("/")
    return "/".join((what, method, *([more] if more else ()), board))


def _all(seeds: Mapping[int, Sequence[Played]]) -> list[Played]:
    return [play for seed in sorted(seeds) for play in seeds[seed]]


def _done(plays: Sequence[Played]) -> Values:
    return np.array([not play["undone"] for play in plays], np.float64)


def _interval(values: Values, seeds: Mapping[int, Sequence[Played]]) -> tuple[float, float]:
    """95% of the means of resampled tasks; the seeds of a task stay together."""
    by_task = values.reshape(len(seeds), -1).mean(axis=0)
    drawn = np.random.default_rng(SEED).integers(0, len(by_task), (DRAWS, len(by_task)))
    low, high = np.quantile(by_task[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def _losses(seeds: Mapping[int, Sequence[Played]], oracle: Mapping[int, Sequence[Played]]) -> list[dict[str, Any]]:
    pairs = zip(_all(seeds), _all(oracle), strict=True)
    return [
        {"task": play["task"], "seed": play["seed"], "undone": play["undone"], "missed": play["missed"]}
        for play, best in pairs
        if play["undone"] and not best["undone"]
    ]


def _misses(plays: Sequence[Played]) -> dict[str, int]:
    kinds = [missed.partition(" ")[2] for play in plays for missed in play["missed"]]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}
