"""What a test module needs, told from what it imports: nothing, other processes, or services that run elsewhere.

Every test gets the marker of its module's kind: `unit`, `process` or `service`. `make test-fast` runs the first.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src"
BENCHMARKS = TESTS.parent / "benchmarks"
SERVICES = frozenset({"services", "backends", "chroma_server", "pgvector_server"})
"""Helpers that reach Redis, PostgreSQL, Chroma, or start one of them."""
STARTS = re.compile(r"\bsubprocess\b|\bsys\.executable\b|\bmultiprocessing\b|\bos\.fork\b|\bStdioServerParameters\b")
IMPORTS = re.compile(r"^ *(?:from|import) (\w+)(?= import | as |$)", re.MULTILINE)
BENCHES = re.compile(r"^from (pegboard_bench[\w.]*) import (.+)$", re.MULTILINE)
ASKS_GIT = frozenset({"pegboard_bench.results"})
"""Starts no more than git, to say which commit was measured."""
LOADS = re.compile(r"pytest\.mark\.(npm|slow)\b")


def kind_of(path: Path) -> str:
    """`unit`, `process` or `service`, of a test module."""
    sources = [path, *(folder / "conftest.py" for folder in path.parents if _is_below_tests(folder))]
    helpers = {helper for source in sources if source.exists() for helper in _reached(source)}
    if helpers & SERVICES:
        return "service"
    texts = [source.read_text("utf-8") for source in sources if source.exists()]
    texts += [(TESTS / f"{helper}.py").read_text("utf-8") for helper in helpers]
    if any(STARTS.search(text) or _starts_a_bench(text) for text in texts) or LOADS.search(texts[0]):
        return "process"
    return "unit"


def _starts_a_bench(text: str) -> bool:
    """Whether it imports what starts contenders, servers or suites to measure them."""
    named = {name for module, names in BENCHES.findall(text) for name in (module, *_below(module, names))}
    return any(_starts(name) for name in named - ASKS_GIT)


def _below(module: str, names: str) -> list[str]:
    return [f"{module}.{name}" for name in re.findall(r"\w+", names)]


@cache
def _starts(module: str) -> bool:
    source = (BENCHMARKS / module.replace(".", "/")).with_suffix(".py")
    return source.exists() and STARTS.search(source.read_text("utf-8")) is not None


def _is_below_tests(folder: Path) -> bool:
    """The conftest of all tests is everybody's: what it has is taken by name."""
    return folder != TESTS and TESTS in folder.parents


@cache
def _reached(source: Path) -> frozenset[str]:
    """The helpers among the tests that a file imports, and those that they import."""
    found: set[str] = set()
    waiting = set(_imported(source))
    while waiting:
        helper = waiting.pop()
        if helper not in found:
            found.add(helper)
            waiting |= _imported(TESTS / f"{helper}.py")
    return frozenset(found)


@cache
def _imported(source: Path) -> frozenset[str]:
    names = set(IMPORTS.findall(source.read_text("utf-8")))
    return frozenset(name for name in names if (TESTS / f"{name}.py").exists())
