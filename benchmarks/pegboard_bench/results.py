"""Results are files: `FOLDER/NAME.json`, with everything needed to get the figures again."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FIGURE_NAME = re.compile(r"[a-z0-9@_.-]+(/[a-z0-9@_.-]+)*")
UNKNOWN = "unknown"
"""The commit outside a checkout."""
WRITTEN = ("bench/results", "docs")
"""What benchmarks write."""
PACKAGES = ("pegboard", "numpy", "onnxruntime", "tokenizers", "toktok-rs", "PyStemmer", "mcp", "bm25s", "faiss-cpu")


def write(
    name: str,
    *,
    command: str,
    seed: int,
    figures: Mapping[str, float],
    tables: Mapping[str, Any],
    folder: Path,
) -> Path:
    """Write a result, whole or not at all, and return its path. Raises ValueError for a figure that is none.

    The parts of the file that are measured by themselves (`extend`) stay, each with the commit that it was measured at;
    one with a figure or a name that is in the new result too does not.
    """
    check(figures)
    path = folder / f"{name}.json"
    of_parts, parts = _parts(path, figures, tables)
    result = {
        "name": name,
        "command": command,
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "seed": seed,
        "figures": {figure: round(float(value), 6) for figure, value in sorted((of_parts | dict(figures)).items())},
        "tables": dict(tables) | parts,
    }
    folder.mkdir(parents=True, exist_ok=True)
    _put(path, result)
    return path


def _parts(
    path: Path, figures: Mapping[str, float], tables: Mapping[str, Any]
) -> tuple[dict[str, float], dict[str, Any]]:
    """The figures and the tables of what was measured by itself, and is not measured again."""
    if not path.exists():
        return {}, {}
    before = read(path)
    parts = {
        name: table
        for name, table in before.get("tables", {}).items()
        if name not in tables and _is_part(table) and not figures.keys() & set(table["figures"])
    }
    return {each: before["figures"][each] for table in parts.values() for each in table["figures"]}, parts


def _is_part(table: Any) -> bool:
    return isinstance(table, Mapping) and {"commit", "date", "machine", "figures"} <= table.keys()


def extend(path: Path, of: str, *, figures: Mapping[str, float], table: Mapping[str, Any]) -> None:
    """Put a part that is measured by itself into a results file, in place of the part of that name that was there.

    The table ``of`` says when and on what the part was measured, and which of the file's figures are its own. Raises
    ValueError for a figure that is none, or that another part has.
    """
    check(figures)
    result = read(path)
    before = result["tables"].get(of, {}).get("figures", ())
    kept = {name: value for name, value in result["figures"].items() if name not in before}
    if both := sorted(kept.keys() & figures.keys()):
        raise ValueError(f"The figure {both[0]!r} is already there, and not of {of!r}")
    made = {name: round(float(value), 6) for name, value in figures.items()}
    result["figures"] = dict(sorted((kept | made).items()))
    stamp = {"commit": commit(), "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    result["tables"] |= {of: stamp | {"figures": sorted(made)} | dict(table)}
    _put(path, result)


def _put(path: Path, result: Mapping[str, Any]) -> None:
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    draft.replace(path)


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))


def measured(results: Mapping[str, Any]) -> str:
    """When, of what and on what: how the section of a results file begins."""
    machine = results["machine"]
    of = f"at commit `{results['commit'][:12]}`"
    if results["commit"] == UNKNOWN:
        of = f"with pegboard {results['versions']['pegboard']}"
    return (
        f"Measured {results['date'][:10]} {of} on {machine['cores']} cores "
        f"({machine['cpu']}), Python {machine['python']}"
    )


def check(figures: Mapping[str, float]) -> None:
    """Names are lower-case parts joined by `/`; values are finite numbers."""
    for name, value in figures.items():
        if not FIGURE_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no figure's name: use lower-case parts joined by '/'")
        if isinstance(value, bool) or not math.isfinite(value):
            raise ValueError(f"The figure {name!r} is {value!r}: it has to be a finite number")


def commit() -> str:
    """The checked-out commit, marked where the sources differ from it; `unknown` outside a checkout.

    What a run writes, results and documentation, is no source: later parts of a results file are of the same commit.
    """
    try:
        head = _git("rev-parse", "HEAD")
        changed = _git("diff", "--name-only", "HEAD", "--", ":/", *(f":(top,exclude){each}" for each in WRITTEN))
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return f"{head}-dirty" if changed else head


def _git(*command: str) -> str:
    answer = subprocess.run(
        ["git", *command],  # noqa: S607
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


def machine() -> dict[str, Any]:
    """What the times depend on. No host name: results are published."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    return {package: found for package in PACKAGES if (found := _version(package))}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
