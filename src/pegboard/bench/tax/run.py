"""A run from beginning to end: jobs, figures, the results file, and the page where that is asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pegboard.bench import results
from pegboard.bench.page import write_page
from pegboard.bench.tax import jobs, pictures
from pegboard.bench.tax.live import figures, measure
from pegboard.bench.tax.plan import Plan
from pegboard.bench.tax.summary import Summary

NAME, QUICK = "tax", "tax-quick"


def run(
    plan: Plan,
    *,
    out: Path,
    resume: bool,
    command: str,
    finished: bool = False,
    page: Path | None = None,
    model_url: str | None = None,
    model: str = "default",
) -> Path:
    """The results file of a plan.

    With ``finished`` nothing is done, and what an earlier run did is put together. With ``model_url`` what a model
    calls is measured too; ``page`` is written anew.
    """
    kept = plan.place.cache
    if finished:
        outcomes = jobs.finished({**plan.jobs(), **plan.peer_jobs()}, kept)
    else:
        outcomes = jobs.done(plan.jobs(), label="tools tax", kept=kept, resume=resume)
        for name, job in plan.peer_jobs().items():
            outcomes |= jobs.done({name: job}, label=name, kept=kept, resume=resume)
    summary = Summary(plan, outcomes)
    live = {} if model_url is None else asyncio.run(measure(plan, model_url, model))
    path = results.write(
        QUICK if plan.quick else NAME,
        command=command,
        seed=plan.seeds[0],
        figures=summary.figures() | figures(live),
        tables=summary.tables() | {"live": live},
        folder=out,
    )
    if page is not None and not plan.quick:
        pictures.draw(results.read(path)["tables"], page.parent)
        write_page(page, out)
    return path
