"""Prints how many modules and lines src/pegboard has, by folder: a look at the layout, not a limit.

python scripts/module_sizes.py         # the number, the lines and the median of each top-level folder
python scripts/module_sizes.py --all   # every module with its lines, the longest first
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).parents[1] / "src" / "pegboard"


def sizes(package: Path) -> dict[str, int]:
    """Lines by path of each module, without `__init__`."""
    return {
        path.relative_to(package).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in sorted(package.rglob("*.py"))
        if path.name != "__init__.py"
    }


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every module, the longest first")
    options = parser.parse_args(words)
    lines = sizes(PACKAGE)
    folders: dict[str, list[int]] = defaultdict(list)
    for path, count in lines.items():
        folders[path.split("/")[0] if "/" in path else "."].append(count)
    if options.all:
        for path, count in sorted(lines.items(), key=lambda each: -each[1]):
            print(f"{count:6,}  {path}")
    for folder, counts in sorted(folders.items()):
        print(f"{folder:<16} {len(counts):4} modules {sum(counts):7,} lines, median {median(counts):g}")
    every = list(lines.values())
    print(f"{'all':<16} {len(every):4} modules {sum(every):7,} lines, median {median(every):g}")


if __name__ == "__main__":
    main()
