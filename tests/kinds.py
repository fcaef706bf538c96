"""What a test module needs, told from what it imports: nothing, other processes, or services that run elsewhere.

Every test gets the marker of its module's kind: `unit`, `process` or `service`. `make test-fast` runs the first.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
SERVICES = frozenset({"services", "backends", "chroma_server"})
"""Helpers that reach Redis, PostgreSQL, Chroma."""
STARTS = re.compile(r"\bsubprocess\b|\bsys\.executable\b|\bmultiprocessing\b|\bos\.fork\b|\bStdioServerParameters\b")
LOADS = re.compile(r"pytest\.mark\.(npm|slow)\b")


def kind_of(path: Path) -> str:
    """`unit`, `process` or `service`, of a test module."""
    sources = [path, *(folder / "conftest.py" for folder in path.parents if _is_below_tests(folder))]
    helpers = {helper for source in sources if source.exists() for helper in _reached(source)}
    if helpers & SERVICES:
        return "service"
    texts = [source.read_text("utf-8") for source in sources if source.exists()]
    texts += [(TESTS / f"{helper}.py").read_text("utf-8") for helper in helpers]
    return "process" if any(STARTS.search(text) for text in texts) or LOADS.search(texts[0]) else "unit"


def _is_below_tests(folder: Path) -> bool:
    """The conftest of all tests is everybody's: what it has is taken by name."""
    return folder != TESTS and TESTS in folder.parents


@cache
def _reached(source: Path) -> frozenset[str]:
    """The helpers among the tests that a file imports, and those that they import."""
    found: set[str] = set()
    waiting = _imported(source)
    while waiting:
        helper = waiting.pop()
        if helper not in found:
            found.add(helper)
            waiting |= _imported(TESTS / f"{helper}.py")
    return frozenset(found)


@cache
def _imported(source: Path) -> set[str]:
    tree = ast.parse(source.read_text("utf-8"))
    names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return {name for name in names if (TESTS / f"{name}.py").exists()}
