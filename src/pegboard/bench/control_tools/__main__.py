"""`python -m pegboard.bench.control_tools`: ten frameworks, directly and through the gateway."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from pegboard.bench import results
from pegboard.bench.control_tools.measuring import ASKS, FRAMEWORKS, TOOLS, measured
from pegboard.bench.page import write_page

FIGURES = ("requests", "filtered")
LOSSES = {"dropped": "dropped", "loops_not_ended": "not_ended"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--installed", type=Path, default=Path(".demo/frameworks"))
    parser.add_argument("--framework", choices=list(FRAMEWORKS), action="append")
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for name in args.framework or FRAMEWORKS:
        tables[name] = {each: outcome.table() for each, outcome in measured(name, args.installed).items()}
        sys.stderr.write(f"{name}: {tables[name]}\n")
    figures = {
        f"{field}/{name}/{configuration}": float(of[field])
        for name, by in tables.items()
        for configuration, of in by.items()
        for field in FIGURES
    } | {
        f"{figure}/{name}": float(sum(of[field] for of in by.values()))
        for name, by in tables.items()
        for figure, field in LOSSES.items()
    }
    results.write(
        "control_tools",
        command="make bench-control-tools",
        seed=0,
        figures=figures,
        tables={"frameworks": tables, "asks": ASKS, "tools": TOOLS},
        folder=args.out,
    )
    if args.page is not None:
        write_page(args.page, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
