"""The garbage collector rests while modules are imported, and is afterwards as it was."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from pegboard.collector import importing


def test_it_rests_while_modules_are_imported_and_goes_on_when_an_import_fails() -> None:
    with importing():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), importing():
        raise ImportError
    assert gc.isenabled()


def test_who_disabled_it_finds_it_disabled() -> None:
    gc.disable()
    try:
        with importing():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_has_been_loaded_is_not_looked_through_again() -> None:
    program = """
import gc
import pegboard.library
from pegboard.collector import keep_loaded
gc.collect()
before = len(gc.get_objects())
keep_loaded()
print(before > 20_000, len(gc.get_objects()) < before / 20, gc.isenabled())
"""
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == ["True", "True", "True"]


def test_what_the_program_made_is_not_scanned_when_it_ends() -> None:
    ends = "import atexit, gc; atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000))"
    program = f"{ends}; from pegboard.apps import main; import sys; sys.argv[1:] = ['--version']; main()"
    ended = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "False True"
