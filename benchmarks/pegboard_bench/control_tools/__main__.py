"""`python -m pegboard_bench.control_tools`: ten frameworks, directly and through the gateway."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pegboard_bench import results
from pegboard_bench.control_tools.measure import ASKS, FRAMEWORKS, PROTECTED, TOOLS, UNPROTECTED, measured
from pegboard_bench.page import write_page
from pegboard_bench.results import commit

FIGURES = ("requests", "required", "filtered")
LOSSES = {"dropped": "dropped", "loops_not_ended": "not_ended"}


def figures_of(tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, float]:
    """By framework: what was asked of each configuration, and what was lost with protection and in the control."""
    figures: dict[str, float] = {}
    for name, by in tables.items():
        for configuration, of in by.items():
            figures |= {f"{field}/{name}/{configuration}": float(of[field]) for field in FIGURES}
        for figure, field in LOSSES.items():
            figures[f"{figure}/{name}"] = float(sum(by[each][field] for each in PROTECTED))
            figures[f"{figure}_{UNPROTECTED}/{name}"] = float(by[UNPROTECTED][field])
    return figures


def table_of(name: str, installed: Path, parts: Path) -> dict[str, dict[str, Any]]:
    """What was seen of a framework, by configuration; of a run of this commit that was broken off, what it saw."""
    part = parts / commit() / f"{name}.json"
    if part.exists():
        return dict(json.loads(part.read_text("utf-8")))
    table = {each: outcome.table() for each, outcome in measured(name, installed).items()}
    sys.stderr.write(f"{name}: {table}\n")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(table), "utf-8")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--installed", type=Path, default=Path(".demo/frameworks"))
    parser.add_argument("--framework", choices=list(FRAMEWORKS), action="append")
    parser.add_argument("--at-once", type=int, default=3, help="so many frameworks: their programs mostly wait")
    parser.add_argument("--parts", type=Path, default=Path(".demo/control_tools"), help="where a broken run goes on")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    names = args.framework or list(FRAMEWORKS)
    with ThreadPoolExecutor(args.at_once) as pool:
        done = [pool.submit(table_of, name, args.installed, args.parts) for name in names]
    tables = {name: each.result() for name, each in zip(names, done, strict=True)}
    results.write(
        "control_tools",
        command="make bench-control-tools",
        seed=0,
        figures=figures_of(tables),
        tables={"frameworks": tables, "asks": ASKS, "tools": TOOLS},
        folder=args.out,
    )
    if args.page is not None:
        write_page(args.page, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
