"""Which files pytest reads for tests, and the marker that each test gets: what would only cost time is left out.

After a run of more than one folder, the seconds of each.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Generator, Iterable
from functools import cache
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

from kinds import SOURCES, TESTS, kind_of
from pegboard.collector import importing

PROMPT = ">>> "
SERVERS = frozenset({"chroma", "pgvector"})
"""Fixtures that start one."""
LEAST_S = 1.0
"""A folder that took less is not named."""


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
    """Each test has the marker of what it needs (`kinds.py`); doctests need nothing. The slow ones come first, so
    that no worker is left with one when the others have ended."""
    for item in items:
        served = SERVERS.intersection(getattr(item, "fixturenames", ()))
        item.add_marker("service" if served else _kind(item.path))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: the garbage collector looks at it neither now nor later."""
    with importing():
        found = yield
    gc.freeze()
    return found


@cache
def _kind(path: Path) -> str:
    return kind_of(path) if TESTS in path.parents else "unit"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time went: seconds of set-up, call and tear-down by folder, added over all workers."""
    every = (report for reports in terminalreporter.stats.values() for report in reports)
    taken = seconds_by_folder(report for report in every if isinstance(report, pytest.TestReport))
    if len(taken) > 1:
        terminalreporter.section("seconds by folder")
        for folder, seconds in taken.most_common():
            if seconds >= LEAST_S:
                terminalreporter.write_line(f"{seconds:8.0f} {folder}")


def seconds_by_folder(reports: Iterable[pytest.TestReport]) -> Counter[str]:
    """Seconds of the tests below each folder; `reports` has one for set-up, call and tear-down of each test."""
    taken: Counter[str] = Counter()
    for report in reports:
        taken[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration  # type: ignore[assignment]
    return taken
