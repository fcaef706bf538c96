"""Names in the package: each public class and each module has its own, and modules are nouns."""

from __future__ import annotations

import ast
from collections import defaultdict
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path, PurePosixPath

import pytest

import module_sizes

PACKAGE = Path(__file__).parents[1] / "src" / "pegboard"
PARALLEL = ("stores", "gateways/llm/formats")
"""Folders whose children have modules with the same names on purpose: one child per backend, or per wire format."""
SAME_NAME = {
    ("apps/cli/audit_log.py", "telemetry/audit_log.py"): "the command, and the log that it shows",
    ("apps/cli/calibrate.py", "evaluation/calibration/calibrate.py"): "the command, and what it runs",
    ("apps/cli/keys.py", "gateways/llm/proxy/keys.py"): "the command that makes the keys, and the check of a key",
    ("apps/cli/mcp.py", "catalog/ingest/mcp.py"): "both are named after the protocol",
    ("apps/cli/pins.py", "stores/*/pins.py"): "the command, and the pins that it shows",
    ("apps/cli/registry.py", "gateways/llm/formats/registry.py"): "the command for MCP registries, and that of formats",
    ("apps/cli/replay.py", "gateways/llm/shadow/replay.py"): "the command, and what it runs",
    ("apps/cli/scan.py", "trust/scan.py"): "the command, and what it runs",
    ("apps/cli/serve.py", "gateways/serve.py"): "the command, and what it runs",
    ("apps/cli/state.py", "stores/state.py"): "the command, and the state that it shows",
    ("habits.py", "stores/*/habits.py"): "what use teaches, and the stores that keep it",
    ("events.py", "stores/memory/events.py"): "the events, and the store that keeps them",
}
"""Pairs of modules that may share a file name, by their paths (the second may be a pattern), with the reason."""
NOT_NOUNS = {
    "testing": "the public fakes, as in NumPy and Starlette",
    "content_encoding": "the HTTP header",
    "defer_loading": "a field of Anthropic's requests",
    "input_required": "a result of MCP",
    "resource_listing": "the listing of resources",
}
"""Modules that may end in -ing or -ed, with the reason."""


@pytest.fixture(scope="module")
def modules() -> list[str]:
    """Paths of all modules below the package, without `__init__`."""
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def test_no_two_public_classes_have_one_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for statement in ast.parse(path.read_text("utf-8")).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                found[statement.name].append(path.relative_to(PACKAGE).as_posix())

    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_modules_share_a_file_name_only_for_a_reason(modules: list[str]) -> None:
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in modules:
        by_name[PurePosixPath(path).name].append(path)
    pairs = [pair for paths in by_name.values() for pair in combinations(paths, 2)]

    assert [pair for pair in pairs if not are_parallel(*pair) and not is_listed(*pair)] == []


def test_modules_are_named_with_nouns(modules: list[str]) -> None:
    names = {path: PurePosixPath(path).stem for path in modules}

    assert [path for path, name in names.items() if name.endswith(("ing", "ed")) and name not in NOT_NOUNS] == []


def test_the_sizes_of_modules_can_be_printed(capsys: pytest.CaptureFixture[str]) -> None:
    module_sizes.main([])

    assert "modules" in capsys.readouterr().out


def are_parallel(one: str, other: str) -> bool:
    """Whether both are in one of the `PARALLEL` folders, directly or in one of its children."""
    folders = [PurePosixPath(path).parent for path in (one, other)]
    return any(all(str(folder) == root or str(folder.parent) == root for folder in folders) for root in PARALLEL)


def is_listed(one: str, other: str) -> bool:
    return any(one == first and fnmatchcase(other, second) for first, second in SAME_NAME)
