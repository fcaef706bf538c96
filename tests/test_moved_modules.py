from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from pegboard.moved_modules import MOVED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_name_gives_the_module_that_took_its_place_and_warns(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)

    with pytest.warns(DeprecationWarning, match=rf"{old} is now {MOVED[old]}\."):
        module = import_module(old)

    assert module is import_module(MOVED[old])
    assert module.__name__ == module.__spec__.name == MOVED[old]  # type: ignore[union-attr]


def test_modules_of_a_package_that_moved_are_found_as_the_ones_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for old in ("pegboard.bench", "pegboard.bench.results"):
        monkeypatch.delitem(sys.modules, old, raising=False)

    with pytest.warns(DeprecationWarning, match="pegboard.bench is now pegboard_bench"):
        import_module("pegboard.bench")
    with pytest.warns(DeprecationWarning, match="pegboard.bench.results is now pegboard_bench.results"):
        module = import_module("pegboard.bench.results")

    assert module is import_module("pegboard_bench.results")


def test_what_never_was_is_not_found() -> None:
    done = subprocess.run([sys.executable, "-c", "import pegboard.frobnicate"], capture_output=True, text=True)

    assert "No module named 'pegboard.frobnicate'" in done.stderr
