from __future__ import annotations

import inspect
import subprocess
import sys
from importlib import resources
from typing import Any

import pytest

import pegboard


def test_the_public_api_has_at_most_fifteen_names_and_each_exists() -> None:
    assert len(pegboard.__all__) <= 15
    assert sorted(pegboard.__all__) == sorted(set(pegboard.__all__))
    assert all(hasattr(pegboard, name) for name in pegboard.__all__)


@pytest.mark.parametrize("name", pegboard.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert (getattr(pegboard, name).__doc__ or "").strip()


def public_parts() -> list[Any]:
    """The public names, and the public methods and properties that are ours."""
    names = [getattr(pegboard, name) for name in pegboard.__all__]
    owned = [vars(each) for each in names if inspect.isclass(each)]
    kinds = (property, classmethod, staticmethod)
    ours = [
        part
        for parts in owned
        for name, part in parts.items()
        if not name.startswith(("_", "settings_customise")) and (inspect.isfunction(part) or isinstance(part, kinds))
    ]
    shorter = {pegboard.Tool.__dict__[name] for name in ("name", "server")}  # shown by the example of the class
    return [*names, *(part for part in ours if part not in shorter)]


@pytest.mark.parametrize("part", public_parts(), ids=lambda part: getattr(part, "__qualname__", None))
def test_every_public_name_and_method_has_an_example(part: Any) -> None:
    """Which runs, as all examples in docstrings do."""
    assert ">>>" in (part.__doc__ or "")


def test_a_star_import_gives_exactly_the_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from pegboard import *", namespace)  # noqa: S102

    assert set(namespace) - {"__builtins__"} == set(pegboard.__all__)


def test_importing_does_no_work() -> None:
    """No model, no tokenizer and no server library is loaded before it is needed."""
    heavy = "{'onnxruntime', 'tokenizers', 'mcp', 'sklearn', 'torch', 'uvicorn'}"
    program = f"import pegboard, sys, threading; print({heavy} & set(sys.modules), threading.active_count())"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split("\n")[0] == "set() 1"
    assert done.stderr == ""


@pytest.mark.requirement("C6")
def test_type_checkers_are_told_that_the_package_is_typed() -> None:
    assert resources.files("pegboard").joinpath("py.typed").is_file()
