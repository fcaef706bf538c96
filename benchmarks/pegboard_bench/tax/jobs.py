"""Jobs by as many processes as there are cores, each kept as it ends, so that a run that was interrupted goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import entry_points
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pegboard.evaluation.progress_bar import bar
from pegboard_bench.sources import package_path, source_files
from pegboard_bench.tax.methods import GROUP

SOURCES = (
    "bench/tax/*.py",
    "bench/tax/requests.txt",
    "evaluation/ranking_metrics.py",
    "bench/peers/**/*.py",
    "routing_board.py",
    "catalog/**/*.py",
    "gateways/mcp/**/*.py",
    "gateways/llm/tool_search/*.py",
    "retrieval/**/*.py",
    "retrieval/**/*.json",
    "routing/**/*.py",
)
"""What an outcome depends on: another text of one of them, and jobs are done anew."""
NOT = frozenset(
    f"{name}.py"
    for name in (
        *(
            "equations",
            "jobs",
            "live",
            "live_page",
            "page",
            "pictures",
            "plan",
            "projection",
            "record",
            "report",
            "run",
        ),
        *("conclusions", "summary", "texts"),
    )
)
"""They make something of outcomes."""

Work = Callable[..., Mapping[str, Any]]
"""A function of a module, for another process, with arguments that can be pickled; its outcome is JSON."""
Jobs = Mapping[str, tuple[Work, tuple[Any, ...]]]
"""What is to be done with which arguments, by a name that a file can have."""


def done(jobs: Jobs, *, label: str, kept: Path | None, resume: bool = True) -> dict[str, Mapping[str, Any]]:
    """The outcome of each job, in the order of ``jobs``. Whatever raises ends the run; what was done is kept."""
    folder = None if kept is None else kept / "tax" / fingerprint()
    found = {name: there for name in jobs if resume and (there := _read(folder, name)) is not None}
    with bar(label) as progress:
        progress(len(found), len(jobs))
        for name, outcome in _run({name: jobs[name] for name in jobs if name not in found}):
            found[name] = outcome
            _write(folder, name, outcome)
            progress(len(found), len(jobs))
    return {name: found[name] for name in jobs}


def finished(jobs: Jobs, kept: Path | None) -> dict[str, Mapping[str, Any]]:
    """The outcomes that are there already; nothing is done."""
    folder = None if kept is None else kept / "tax" / fingerprint()
    return {name: there for name in jobs if (there := _read(folder, name)) is not None}


def fingerprint() -> str:
    """Of the sources that outcomes depend on, and of the versions of other packages' methods."""
    digest = hashlib.sha256()
    for path in source_files(SOURCES):
        if path.name not in NOT:
            digest.update(package_path(path).encode() + path.read_bytes())
    for point in entry_points(group=GROUP):
        digest.update(f"{point.value} {point.dist.version if point.dist else ''}".encode())
    return digest.hexdigest()[:16]


def _run(jobs: Jobs) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """As they end. A single one is done here."""
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers < 2:
        yield from ((name, work(*arguments)) for name, (work, arguments) in jobs.items())
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        under_way = {pool.submit(work, *arguments): name for name, (work, arguments) in jobs.items()}
        for each in as_completed(under_way):
            yield under_way[each], each.result()


def _read(folder: Path | None, name: str) -> Mapping[str, Any] | None:
    if folder is None or not (path := folder / f"{name}.json").is_file():
        return None
    return dict(json.loads(path.read_text("utf-8")))


def _write(folder: Path | None, name: str, outcome: Mapping[str, Any]) -> None:
    """Whole or not at all."""
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(outcome), "utf-8")
    draft.replace(path)
