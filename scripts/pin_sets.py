"""Writes down what every set contains: `benchmarks/pegboard_bench/sets/checksums.json`, from a folder of built sets.

python scripts/pin_sets.py DIR          # after a recipe was changed on purpose
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from pegboard_bench.sets.folder import content_of
from pegboard_bench.sets.recipes import RECIPES

CHECKSUMS = Path(__file__).parents[1] / "benchmarks" / "pegboard_bench" / "sets" / "checksums.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of `pegboard-bench sets fetch --to`")
    pinned = {recipe.name: contents(parser.parse_args().folder / recipe.name) for recipe in RECIPES}
    CHECKSUMS.write_text(json.dumps(pinned, indent=2) + "\n", "utf-8")
    print(f"Written to {CHECKSUMS}")


def contents(folder: Path) -> dict[str, object]:
    found = {path.name: content_of(path) for path in sorted(folder.glob("*.gz"))}
    if not found:
        raise SystemExit(f"{folder} has no set: build it first.")
    return {name: asdict(content) for name, content in found.items() if content}


if __name__ == "__main__":
    main()
