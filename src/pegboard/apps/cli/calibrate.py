"""`pegboard calibrate`: what a deployment's own queries teach, kept where it is better."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples
from pegboard.errors import ConfigError, PegboardError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.apps.cli.boards import Replaced
    from pegboard.apps.cli.calibrated import Outcome
    from pegboard.apps.cli.configs import Configured
    from pegboard.bench.datasets import Query
    from pegboard.bench.learning.labelled import Labelled
    from pegboard.catalog import Catalog
    from pegboard.retrieval.local_fit import LocalFit
    from pegboard.settings import Settings

OUT = "calibration.json"
CHECK = "`pegboard doctor` says what is wrong with each server."

EXAMPLES = examples(
    "From labelled requests, for the servers of a configuration",
    "pegboard calibrate --queries queries.jsonl --config pegboard.toml",
    "From requests and the calls that served them; only say what would change",
    "pegboard calibrate --observed observed.jsonl --catalog tools.json --dry-run",
    "What one line of each file looks like",
    '{"id": "1", "query": "…", "relevant": [["github", "create_issue"]]}\n'
    '{"query": "…", "called": [["github", "create_issue"]], "failed": []}',
)


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
            "--out", metavar="FILE", help=f"Where the result goes; {OUT} beside the configuration if not set."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Fit the threshold of attention and the fusion of hybrid to the requests of one deployment.

    The threshold goes from 0.10 to 0.50 by 0.02 and the best F1 wins. Fusion and calibration are fitted near those
    that ship. Each is judged on requests it was not fitted on (5 folds) and kept only where it is better. At least 20
    requests; 100 to 200 are good. Point to the written file with calibration = "calibration.json".
    """
    from pegboard.apps.cli import calibrated, output
    from pegboard.apps.cli.configs import given, given_or_usual

    asked = _asked(queries, observed)
    find = given if catalog else given_or_usual
    configured = find(config or [], k=k)
    to = out or (config[-1].parent if config else Path()) / OUT
    if not to.parent.is_dir():
        raise _unwritable(to, "its folder does not exist")
    outcome = asyncio.run(_learn(asked, configured, catalog or [], context.obj))
    written = None if dry_run or outcome.kept is None else _write(outcome.kept, to)
    if as_json:
        output.print_json(calibrated.payload(outcome, written))
    else:
        calibrated.show(outcome, written, to, dry_run=dry_run)


def _asked(queries: Path | None, observed: Path | None) -> tuple[Query, ...]:
    from pegboard.bench.learning.evidence import read_labelled, read_observed

    if queries is not None and observed is None:
        return read_labelled(queries)
    if observed is not None and queries is None:
        return read_observed(observed)
    raise ConfigError(
        "There has to be one file to learn from.", remedy="Give either --queries FILE or --observed FILE."
    )


async def _learn(
    asked: Sequence[Query], configured: Configured, catalogs: Sequence[Path], replaced: Replaced
) -> Outcome:
    from pegboard.apps.cli.calibrated import Outcome
    from pegboard.apps.cli.sources import load
    from pegboard.bench.learning.calibrate import learn
    from pegboard.bench.learning.evidence import evidence
    from pegboard.bench.progress import bar
    from pegboard.compose import default_parts, profile

    settings, loaded = configured.settings, await load(configured, catalogs)
    if not len(loaded.catalog):
        raise PegboardError(" ".join(["There are no tools to calibrate for.", *loaded.lines()]), remedy=CHECK)
    found = evidence(asked, loaded.catalog)
    attention, hybrid = (_as_shipped(settings, name) for name in ("attention", "hybrid"))
    by_summary = await _labelled(attention, loaded.catalog, found.queries, replaced)
    by_parts = await _labelled(hybrid, loaded.catalog, found.queries, replaced)
    with bar("cross-validating") as progress:
        learnt = learn(by_summary, by_parts, profile(attention), progress)
    encoder = default_parts(settings, **(replaced or {})).encoder
    return Outcome(loaded=loaded, evidence=found, learnt=learnt, kept=learnt.kept(encoder.model))


def _as_shipped(settings: Settings, profile: str) -> Settings:
    """A profile as it is without an earlier calibration. Limits set for another profile are not for this one.

    Without a fallback, too: what is fitted has to be of one space.
    """
    mine = settings.profile == profile
    limits = {"threshold": settings.threshold, "recall": settings.recall} if mine else {}
    encoder = settings.encoder.model_copy(update={"fallback": "none"})
    bare = {"profile": profile, "calibration": None, "threshold": None, "recall": None, "encoder": encoder}
    return settings.model_copy(update=bare | limits)


async def _labelled(
    settings: Settings, catalog: Catalog, queries: Sequence[Query], replaced: Replaced
) -> list[Labelled]:
    from pegboard.apps.cli.boards import warm_board
    from pegboard.bench.learning.labelled import label
    from pegboard.bench.progress import bar

    board, _ = await warm_board(settings, catalog, replaced)
    with bar(f"scoring requests, {settings.profile}") as progress:
        return await label(board, queries, progress)


def _write(fitted: LocalFit, to: Path) -> Path:
    try:
        fitted.write(to)
    except OSError as error:
        raise _unwritable(to, str(error)) from error
    return to


def _unwritable(out: Path, why: str) -> ConfigError:
    return ConfigError(f"Cannot write {str(out)!r}: {why}.", remedy="Name another file with --out.")
