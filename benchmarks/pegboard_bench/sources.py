"""The source files that outcomes depend on: of the benchmarks (`bench/…`) and of Pegboard itself."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

BENCH = "bench/"


def source_files(patterns: Iterable[str]) -> list[Path]:
    """What fits any of the patterns, sorted by path."""
    found: set[Path] = set()
    for pattern in patterns:
        package = "pegboard_bench" if pattern.startswith(BENCH) else "pegboard"
        found.update(Path(str(files(package))).glob(pattern.removeprefix(BENCH)))
    return sorted(found)


def package_path(path: Path) -> str:
    """The path of a source below the folder of its package, with `bench/` before those of the benchmarks."""
    bench = Path(str(files("pegboard_bench")))
    if path.is_relative_to(bench):
        return BENCH + path.relative_to(bench).as_posix()
    return path.relative_to(Path(str(files("pegboard")))).as_posix()
