"""`pegboard calibrate`: fit the ranking to a deployment's own queries, and keep what is better."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from pegboard.apps.cli.atomic_files import staged
from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table, unwritable
from pegboard.apps.cli.tool_sources import LoadedTools
from pegboard.errors import ConfigError
from pegboard.evaluation.calibration.calibrate import FOLDS, CalibrationRun, Comparison
from pegboard.evaluation.calibration.sweep import Sweep
from pegboard.evaluation.datasets import Evidence
from pegboard.evaluation.ranking_metrics import Interval
from pegboard.retrieval.local_fit import LocalFit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.apps.cli.configs import Configured
    from pegboard.apps.cli.warm_board import Replaced
    from pegboard.catalog import Catalog
    from pegboard.evaluation.calibration.labelled_queries import LabelledQuery
    from pegboard.evaluation.datasets import Query
    from pegboard.settings import Settings

OUT = "calibration.json"
EXAMPLES = examples(
    "From labelled requests, for the servers of a configuration",
    "pegboard calibrate --queries queries.jsonl --config pegboard.toml",
    "From requests and the calls that followed; only show what would change",
    "pegboard calibrate --observed observed.jsonl --catalog tools.json --dry-run",
    "What one line of each file looks like",
    '{"id": "1", "query": "…", "relevant": [["github", "create_issue"]]}\n'
    '{"query": "…", "called": [["github", "create_issue"]], "failed": []}',
)

NAMES = {"hybrid": "Fusion of hybrid", "words": "The same without vectors"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """``kept`` has the parts that are better than before; None if there are none."""

    loaded: LoadedTools
    evidence: Evidence
    learnt: CalibrationRun
    kept: LocalFit | None


def calibrate(
    context: typer.Context,
    queries: Annotated[
        Path | None,
        typer.Option(
            "--queries", metavar="FILE", help="Labelled requests as JSON lines, as `pegboard rank` reads; also .gz."
        ),
    ] = None,
    observed: Annotated[
        Path | None,
        typer.Option(
            "--observed", metavar="FILE", help="Requests and the calls that followed, as JSON lines; also .gz."
        ),
    ] = None,
    config: Configs = None,
    catalog: Catalogs = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="At most this many tools in the sweep.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help=f"Where to write the result; by default {OUT} beside the configuration."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Fit the threshold of attention and the fusion of hybrid to the requests of one deployment.

    The threshold with the best F1 is chosen from 0.10 to 0.50, in steps of 0.02. Fusion and calibration are fitted with
    the shipped ones as a prior. Each is judged on requests it was not fitted on (5 folds) and kept only if it is
    better. It needs at least 20 requests; 100 to 200 are good. To use the written file, set calibration =
    "calibration.json".
    """
    from pegboard.apps.cli.configs import for_tools

    asked = _asked(queries, observed)
    configured = for_tools(config, catalog, k=k)
    to = out or (config[-1].parent if config else Path()) / OUT
    if not to.parent.is_dir():
        raise unwritable(to, "its folder does not exist")
    outcome = asyncio.run(_learn(asked, configured, catalog or [], context.obj))
    written = None if dry_run or outcome.kept is None else _write(outcome.kept, to)
    if as_json:
        print_json(payload(outcome, written))
    else:
        show(outcome, written, to, dry_run=dry_run)


def _asked(queries: Path | None, observed: Path | None) -> tuple[Query, ...]:
    from pegboard.evaluation.datasets import read_observed, read_queries

    if queries is not None and observed is None:
        return read_queries(queries)
    if observed is not None and queries is None:
        return read_observed(observed)
    raise ConfigError(
        "A calibration needs one file of requests.", remedy="Give either --queries FILE or --observed FILE."
    )


async def _learn(
    asked: Sequence[Query], configured: Configured, catalogs: Sequence[Path], replaced: Replaced
) -> CalibrationReport:
    from pegboard.apps.cli.tool_sources import load_some
    from pegboard.compose import default_parts, profile
    from pegboard.evaluation.calibration.calibrate import learn
    from pegboard.evaluation.datasets import evidence
    from pegboard.evaluation.progress_bar import bar

    settings, loaded = configured.settings, await load_some(configured, catalogs, "to calibrate for")
    found = evidence(asked, loaded.catalog)
    attention, hybrid = (_as_shipped(settings, name) for name in ("attention", "hybrid"))
    by_summary = await _labelled(attention, loaded.catalog, found.queries, replaced)
    by_parts = await _labelled(hybrid, loaded.catalog, found.queries, replaced)
    with bar("cross-validating") as progress:
        learnt = learn(by_summary, by_parts, profile(attention), progress)
    encoder = default_parts(settings, **(replaced or {})).encoder
    return CalibrationReport(loaded=loaded, evidence=found, learnt=learnt, kept=learnt.kept(encoder.model))


def _as_shipped(settings: Settings, profile: str) -> Settings:
    """Settings for a profile without an earlier calibration. Limits that were set for another profile are dropped.

    The encoder has no fallback, because a fit must use one vector space.
    """
    mine = settings.profile == profile
    limits = {"threshold": settings.threshold, "recall": settings.recall} if mine else {}
    encoder = settings.encoder.model_copy(update={"fallback": "none"})
    bare = {"profile": profile, "calibration": None, "threshold": None, "recall": None, "encoder": encoder}
    return settings.model_copy(update=bare | limits)


async def _labelled(
    settings: Settings, catalog: Catalog, queries: Sequence[Query], replaced: Replaced
) -> list[LabelledQuery]:
    from pegboard.apps.cli.warm_board import warm_board
    from pegboard.evaluation.calibration.labelled_queries import label
    from pegboard.evaluation.progress_bar import bar

    board, _ = await warm_board(settings, catalog, replaced)
    with bar(f"scoring requests, {settings.profile}") as progress:
        return await label(board, queries, progress)


def _write(fitted: LocalFit, to: Path) -> Path:
    with staged(to) as file:
        file.write(fitted.text().encode())
    return to


def payload(outcome: CalibrationReport, written: Path | None) -> dict[str, Any]:
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


def show(outcome: CalibrationReport, written: Path | None, to: Path, *, dry_run: bool) -> None:
    console = stdout()
    for line in outcome.loaded.lines():
        console.print(plain(line))
    _used(console, outcome)
    _curve(console, outcome.learnt.sweep)
    for name, each in outcome.learnt.refits.items():
        _fusion(console, NAMES[name], each.held_out)
    console.print(plain(_ending(outcome, written, to, dry_run=dry_run)), soft_wrap=True)


def _used(console: Console, outcome: CalibrationReport) -> None:
    found = outcome.evidence
    left = f"; {found.left_out} left out for lack of text or labels" if found.left_out else ""
    unknown = f"; {found.unknown} labels name tools that are not on the board" if found.unknown else ""
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


def _ending(outcome: CalibrationReport, written: Path | None, to: Path, *, dry_run: bool) -> str:
    if outcome.kept is None:
        earlier = f" {to} is from an earlier run: remove it to return to the shipped values." if to.exists() else ""
        return f"Nothing is significantly better than the shipped values; nothing was written.{earlier}"
    if dry_run:
        return f"Dry run: nothing was written. The result would go to {to}"
    return f'Written to {written}. To use it, set calibration = "{to.name}" in the configuration beside it.'


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
