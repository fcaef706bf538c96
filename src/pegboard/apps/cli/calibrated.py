"""What calibrating gave, as tables and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from pegboard.apps.cli.output import cells, plain, stdout, table
from pegboard.apps.cli.sources import Loaded
from pegboard.bench.learning.calibrate import FOLDS, Learnt
from pegboard.bench.learning.evidence import Evidence
from pegboard.bench.learning.sweep import Sweep
from pegboard.bench.learning.validation import Comparison
from pegboard.bench.metrics import Interval
from pegboard.retrieval.local_fit import LocalFit

NAMES = {"hybrid": "Fusion of hybrid", "words": "The same without vectors"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``kept`` is what is better than before; None where nothing is."""

    loaded: Loaded
    evidence: Evidence
    learnt: Learnt
    kept: LocalFit | None


def payload(outcome: Outcome, written: Path | None) -> dict[str, Any]:
    sweep = outcome.learnt.sweep
    return {
        "queries": len(outcome.evidence.queries),
        "left_out": outcome.evidence.left_out,
        "unknown_labels": outcome.evidence.unknown,
        "tools": outcome.learnt.tools,
        "folds": FOLDS,
        "threshold": {
            "curve": [{name: round(value, 4) for name, value in asdict(point).items()} for point in sweep.points],
            "best": sweep.best,
            "before": sweep.before,
            "held_out_f1": {"before": round(sweep.held_out_before, 4), "after": round(sweep.held_out_after, 4)},
            "gain": _interval(sweep.gain),
            "kept": "new" if sweep.better else "old",
        },
        "fusions": {name: _compared(each.held_out) for name, each in outcome.learnt.refits.items()},
        "out": None if written is None else str(written),
    } | outcome.loaded.payload()


def show(outcome: Outcome, written: Path | None, to: Path, *, dry_run: bool) -> None:
    console = stdout()
    for line in outcome.loaded.lines():
        console.print(plain(line))
    _used(console, outcome)
    _curve(console, outcome.learnt.sweep)
    for name, each in outcome.learnt.refits.items():
        _fusion(console, NAMES[name], each.held_out)
    console.print(plain(_ending(outcome, written, to, dry_run=dry_run)), soft_wrap=True)


def _used(console: Console, outcome: Outcome) -> None:
    found = outcome.evidence
    left = f"; {found.left_out} left out for want of text or labels" if found.left_out else ""
    unknown = f"; {found.unknown} labels name tools that are not there" if found.unknown else ""
    console.print(plain(f"{len(found.queries)} requests over {outcome.learnt.tools} tools{left}{unknown}."))


def _curve(console: Console, sweep: Sweep) -> None:
    made = table("Threshold of attention", ">θ", ">precision", ">recall", ">F1", ">tools", "")
    for point in sweep.points:
        marks = ["best"] * (point.theta == sweep.best) + ["before"] * (point.theta == sweep.before)
        shares = (f"{value:.3f}" for value in (point.precision, point.recall, point.f1))
        made.add_row(*cells(f"{point.theta:.2f}", *shares, f"{point.tools:.1f}", ", ".join(marks)))
    console.print(made)
    console.print(
        plain(
            f"Best θ: {sweep.best:.2f}. On requests it was not chosen on, F1 goes from {sweep.held_out_before:.3f} "
            f"(θ {sweep.before:.2f}) to {sweep.held_out_after:.3f}, {_signed(sweep.gain)}: "
            f"{'the new one is kept' if sweep.better else 'the old one stays'}.\n"
        )
    )


def _fusion(console: Console, title: str, compared: Comparison) -> None:
    made = table(f"{title}, on unseen requests", "", ">before", ">after", ">gain [95%]")
    for name, before in compared.before.items():
        gain = _signed(compared.gains[name]) if name in compared.gains else ""
        made.add_row(*cells(name.replace("_", " "), f"{before:.4f}", f"{compared.after[name]:.4f}", gain))
    console.print(made)
    console.print("The new one is better and is kept.\n" if compared.better else "Not better: the old one stays.\n")


def _ending(outcome: Outcome, written: Path | None, to: Path, *, dry_run: bool) -> str:
    if outcome.kept is None:
        earlier = f" {to} is of an earlier run: remove it to go back to what ships." if to.exists() else ""
        return f"Nothing is surely better than what ships; nothing is written.{earlier}"
    if dry_run:
        return f"Not written, as this was a dry run; it would go to {to}"
    return f'Written to {written}. In force where a configuration beside it says calibration = "{to.name}".'


def _compared(compared: Comparison) -> dict[str, Any]:
    return {
        "before": {name: round(value, 4) for name, value in compared.before.items()},
        "after": {name: round(value, 4) for name, value in compared.after.items()},
        "gains": {name: _interval(gain) for name, gain in compared.gains.items()},
        "kept": "new" if compared.better else "old",
    }


def _interval(gain: Interval) -> list[float]:
    return [round(each, 4) for each in (gain.mean, gain.low, gain.high)]


def _signed(gain: Interval) -> str:
    return f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
