"""Which files pytest reads for tests, and the marker that each test gets: what would only cost time is left out."""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

from kinds import SOURCES, TESTS, kind_of

PROMPT = ">>> "


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Sources without doctests; with `-m unit`, the modules that it would deselect: importing them takes longer."""
    if collection_path.suffix != ".py":
        return None
    if SOURCES in collection_path.parents:
        return None if PROMPT in collection_path.read_text("utf-8") else True
    unwanted = config.getoption("markexpr") == "unit" and _kind(collection_path) != "unit"
    return True if unwanted else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests are in the sources: test modules are not searched for them."""
    found = yield
    return [each for each in found if SOURCES in file_path.parents or not isinstance(each, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test has the marker of what it needs (`kinds.py`); doctests need nothing."""
    for item in items:
        item.add_marker("service" if "chroma" in getattr(item, "fixturenames", ()) else _kind(item.path))


@cache
def _kind(path: Path) -> str:
    return kind_of(path) if TESTS in path.parents else "unit"
