"""`python -m pegboard_bench.adapters`: agents of eleven frameworks over 200 tools, behind their adapters."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pegboard_bench import results
from pegboard_bench.adapters.drivers import ADDED_TIME, FRAMEWORKS, INSTALLED, PARTS, driven, release
from pegboard_bench.adapters.outcome import failed_parts, figures_of
from pegboard_bench.page import write_page
from pegboard_bench.results import commit


def found_of(name: str, installed: Path, parts: Path) -> dict[str, Any]:
    """What was found of a framework; of a run of this commit that was broken off, what it had found."""
    part = parts / commit() / f"{name}.json"
    if part.exists():
        return dict(json.loads(part.read_text("utf-8")))
    found: dict[str, Any] = {
        "release": release(name, installed),
        "load_before": os.getloadavg()[0],
        "parts": driven(name, [*PARTS, ADDED_TIME], installed=installed),
    }
    sys.stderr.write(f"{name}: {found['parts'].get(ADDED_TIME)} {failed_parts(found['parts'])}\n")
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_text(json.dumps(found), "utf-8")
    return found


def timed_again(names: Sequence[str], installed: Path, out: Path) -> None:
    """Measures the added time alone, and leaves what else the file says."""
    said = json.loads((out / "adapters.json").read_text("utf-8"))
    figures, table = said["figures"], said["tables"]["frameworks"]
    for name in names:
        load = os.getloadavg()[0]
        added = driven(name, [ADDED_TIME], installed=installed)[ADDED_TIME]
        sys.stderr.write(f"{name}: {added}\n")
        table[name] |= {"release": release(name, installed), "load_before": load, "added_time": added}
        figures |= {f"processor_ms/{name}": added["processor_ms"], f"wall_ms/{name}": added["wall_ms"][1]}
    others = said["tables"].get("others_of") or {each: said[each] for each in ("commit", "date")}
    tables = {"frameworks": table, "others_of": others}
    results.write("adapters", command="make bench-adapters", seed=0, figures=figures, tables=tables, folder=out)


def main() -> int:
    """0 if every agent was offered its tools, and no request saw another's or failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--installed", type=Path, default=INSTALLED)
    parser.add_argument("--framework", choices=list(FRAMEWORKS), action="append")
    parser.add_argument("--parts", type=Path, default=Path(".demo/adapters"), help="where a broken run goes on")
    parser.add_argument(
        "--times", action="store_true", help="measure the added time alone, and keep what else was found"
    )
    parser.add_argument("--out", type=Path, default=Path("bench/results"))
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    names = args.framework or FRAMEWORKS
    if args.times:
        timed_again(names, args.installed, args.out)
        if args.page is not None:
            write_page(args.page, args.out)
        return 0
    found = {name: found_of(name, args.installed, args.parts) for name in names}
    figures = {name: value for each, of in found.items() for name, value in figures_of(each, of["parts"]).items()}
    table = {
        name: {
            "release": of["release"],
            "load_before": of["load_before"],
            "failed": failed_parts(of["parts"]),
            "added_time": of["parts"].get(ADDED_TIME, {}),
        }
        for name, of in found.items()
    }
    results.write(
        "adapters",
        command="make bench-adapters",
        seed=0,
        figures={"frameworks": float(len(names)), "tools": 200.0, **figures},
        tables={"frameworks": table},
        folder=args.out,
    )
    if args.page is not None:
        write_page(args.page, args.out)
    bad = [
        name
        for name in names
        if figures[f"offered/{name}"] < figures[f"turns/{name}"]
        or not figures[f"turns/{name}"]
        or figures[f"leaks/{name}"]
        or figures[f"errors/{name}"]
    ]
    sys.stderr.write(f"not as it should be: {', '.join(bad) or 'none'}\n")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
