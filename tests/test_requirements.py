"""`requirements.toml` says which test shows what. This keeps it true both ways, from the source of the tests alone."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
MANIFEST = tomllib.loads((TESTS / "requirements.toml").read_text("utf-8"))

FIELD_DEFECTS = {f"P{number}" for number in range(1, 28)} | {f"M{number}" for number in range(1, 31)}
SEEN_IN_USE = (
    {f"A{number}" for number in range(1, 13)}
    | {f"B{number}" for number in range(1, 13)}
    | {f"C{number}" for number in range(1, 11)}
    | {f"D{number}" for number in range(1, 15)}
)
PAPERS = (
    {f"000.eq{number}" for number in range(1, 9)}
    | {f"001.eq{number}" for number in range(1, 10)}
    | {"000.alg1", "001.alg1", "001.alg2"}
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Shown = tuple[str, str]
"""A line of the manifest and a test of it, as `tests/FILE.py::NAME`; the file alone where all of it is marked."""


@cache
def marked() -> frozenset[Shown]:
    return frozenset((line, test) for path in _modules() for line, test, _ in _markers_of(path))


def listed() -> set[Shown]:
    return {(line, test) for line, entry in MANIFEST.items() for test in entry.get("tests", [])}


@cache
def _modules() -> tuple[Path, ...]:
    return tuple(TESTS.rglob("test_*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _markers_of(path: Path) -> Iterator[tuple[str, str, int]]:
    """Line of the manifest, test, and place in the file, of every marker on a test, a class or a module."""
    file = f"tests/{path.relative_to(TESTS).as_posix()}"
    tree = _tree(path)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and "pytestmark" in map(ast.unparse, statement.targets):
            yield from ((line, file, at) for line, at in _lines_in(statement.value))
        if isinstance(statement, Definition):
            yield from _markers_on(statement, file)


def _markers_on(definition: Definition, inside: str) -> Iterator[tuple[str, str, int]]:
    name = f"{inside}::{definition.name}"
    for decorator in definition.decorator_list:
        yield from ((line, name, at) for line, at in _lines_in(decorator))
    if isinstance(definition, ast.ClassDef):
        for member in definition.body:
            if isinstance(member, Definition):
                yield from _markers_on(member, name)


def _lines_in(expression: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(expression):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "requirement"
            and ast.unparse(node.func) == "pytest.mark.requirement"
        ):
            for argument in node.args:
                yield ast.literal_eval(argument), node.lineno


def _tests_in(path: Path) -> set[str]:
    file = f"tests/{path.relative_to(TESTS).as_posix()}"
    names = {file}

    def walk(body: list[ast.stmt], inside: str) -> None:
        for statement in body:
            if isinstance(statement, Definition) and statement.name.lower().startswith("test"):
                names.add(f"{inside}::{statement.name}")
                walk(statement.body if isinstance(statement, ast.ClassDef) else [], f"{inside}::{statement.name}")

    walk(_tree(path).body, file)
    return names


def test_every_defect_seen_in_the_field_has_a_line() -> None:
    assert sorted(FIELD_DEFECTS - MANIFEST.keys()) == []


def test_every_defect_seen_in_use_has_a_line() -> None:
    assert sorted(SEEN_IN_USE - MANIFEST.keys()) == []


def test_every_equation_and_algorithm_of_the_papers_has_a_line() -> None:
    assert sorted(PAPERS - MANIFEST.keys()) == []


def test_every_line_says_what_it_is_and_has_tests_or_a_status() -> None:
    for line, entry in MANIFEST.items():
        assert entry.keys() <= {"text", "tests", "status", "issue", "reason"}, line
        assert entry["text"].endswith("."), line
        assert entry.get("tests") or entry.get("status"), f"{line} has neither tests nor a status"
        assert entry.get("status") in (None, "planned", "declined"), line


def test_what_is_planned_names_its_issue_and_what_is_declined_its_reason() -> None:
    for line, entry in MANIFEST.items():
        assert ("issue" in entry) == (entry.get("status") == "planned"), line
        assert ("reason" in entry) == (entry.get("status") == "declined"), line
        assert not (entry.get("tests") and entry.get("status") == "declined"), line


def test_every_test_a_line_lists_exists() -> None:
    existing = {test for path in _modules() for test in _tests_in(path)}

    assert sorted(shown for shown in listed() if shown[1] not in existing) == []


def test_every_test_a_line_lists_carries_its_marker() -> None:
    assert sorted(listed() - marked()) == []


def test_every_marker_on_a_test_is_listed_in_its_line() -> None:
    assert sorted(marked() - listed()) == []


def test_no_test_is_listed_twice_in_a_line() -> None:
    for line, entry in MANIFEST.items():
        assert len(entry.get("tests", [])) == len(set(entry.get("tests", []))), line


def test_every_marker_stands_where_it_is_read() -> None:
    """On a test, a class or a module; one on a parameter would be missed."""
    for path in (each for each in _modules() if "mark.requirement" in each.read_text("utf-8")):
        everywhere = {at for _, at in _lines_in(_tree(path))}
        read = {at for _, _, at in _markers_of(path)}
        assert everywhere == read, f"{path.name}: lines {sorted(everywhere - read)}"
