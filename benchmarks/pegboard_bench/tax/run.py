"""A run from beginning to end: jobs, figures, the results file, and the page where that is asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pegboard.extras import required
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.tax import jobs, live, pictures
from pegboard_bench.tax.plan import Plan
from pegboard_bench.tax.summary import Summary

NAME, QUICK = "tax", "tax-quick"
LIVE, LIVE_QUICK = "live", "live-quick"


def run(
    plan: Plan,
    *,
    out: Path,
    resume: bool,
    command: str,
    finished: bool = False,
    page: Path | None = None,
) -> Path:
    """The results file of a plan; ``page`` is written anew, which needs matplotlib (ConfigError where it is missing).

    With ``finished`` nothing is done, and what an earlier run did is put together.
    """
    if page is not None:
        required("matplotlib", "bench")
    kept = plan.place.cache
    if finished:
        outcomes = jobs.finished({**plan.jobs(), **plan.peer_jobs()}, kept)
    else:
        outcomes = jobs.done(plan.jobs(), label="tools tax", kept=kept, resume=resume)
        for name, job in plan.peer_jobs().items():
            outcomes |= jobs.done({name: job}, label=name, kept=kept, resume=resume)
    summary = Summary(plan, outcomes)
    path = results.write(
        QUICK if plan.quick else NAME,
        command=command,
        seed=plan.seeds[0],
        figures=summary.figures(),
        tables=summary.tables(),
        folder=out,
    )
    if page is not None:
        pictures.draw(results.read(path)["tables"], page.parent)
        write_page(page, out)
    return path


def run_model(
    plan: Plan, *, url: str, model: str, tasks: int, out: Path, command: str, page: Path | None = None
) -> Path:
    """The results file of what a model calls, written after each method: a run that is interrupted leaves what it had.

    Raises ConfigError where the endpoint does not answer.
    """
    return asyncio.run(_asked(plan, url=url, model=model, tasks=tasks, out=out, command=command, page=page))


async def _asked(plan: Plan, *, url: str, model: str, tasks: int, out: Path, command: str, page: Path | None) -> Path:
    async for found in live.measure(plan, url, model, tasks):
        path = results.write(
            LIVE_QUICK if plan.quick else LIVE,
            command=command,
            seed=plan.seeds[0],
            figures=live.figures(found),
            tables=found,
            folder=out,
        )
    if page is not None:
        write_page(page, out)
    return path
