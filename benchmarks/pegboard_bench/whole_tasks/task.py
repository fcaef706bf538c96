"""Tasks as data: what a user asks, the calls that do it, and how it is seen that it was done."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from pegboard.model import ToolId

REFERENCE = re.compile(r"<<(\d+):(.+?)>>", re.DOTALL)
"""`<<1:expression>>`: what the expression finds in the result of step 1, its first group if it has one."""
NOT_FOUND = "unknown"
"""In place of what an expression does not find: the agent goes on with what it has, which is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call. ``tools`` do the same, the first is the usual one; ``need`` is what a model searches for."""

    tools: tuple[ToolId, ...]
    arguments: Mapping[str, Any]
    need: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``checks`` are a kind and what it is about each: `checks.py` has the kinds. ``concludes`` is what follows from
    results in which all expressions of ``evidence`` are found, for tasks that ask for more than a result says."""

    name: str
    ask: str
    steps: tuple[Step, ...]
    checks: tuple[tuple[str, ...], ...]
    evidence: tuple[str, ...] = ()
    concludes: str = ""


def tasks(places: Mapping[str, str]) -> list[Task]:
    """All tasks, with ``places`` (`root`, `pages`) put in."""
    return read((files("pegboard_bench.whole_tasks") / "tasks.toml").read_text("utf-8"), places)


def read(text: str, places: Mapping[str, str]) -> list[Task]:
    """Tasks in the form of `tasks.toml`."""
    said = tomllib.loads(text)
    same: Mapping[str, Sequence[str]] = said.get("same", {})
    return [made(each, same, places) for each in said["task"]]


def made(said: Mapping[str, Any], same: Mapping[str, Sequence[str]], places: Mapping[str, str]) -> Task:
    """One task in that form, as TOML reads it."""
    placed = json.loads(_placed(json.dumps([said["ask"], said["steps"], said["checks"]]), places))
    ask, steps, checks = placed
    return Task(
        name=said["name"],
        ask=ask,
        steps=tuple(
            Step(tools=tuple(ToolId(*each.split("/")) for each in (tool, *same.get(tool, ()))), arguments=of, need=need)
            for tool, of, need in steps
        ),
        checks=tuple(tuple(check) for check in checks),
        evidence=tuple(said.get("evidence", ())),
        concludes=said.get("concludes", ""),
    )


def resolved(arguments: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
    """Arguments with what earlier results say in them. A reference that is all of a value and finds digits is a number.

    >>> resolved({"a": "<<1:n=(.)>>", "b": ["is <<1:n=.>>"]}, ["n=4"])
    {'a': 4, 'b': ['is n=4']}
    """
    return {name: _resolved(value, results) for name, value in arguments.items()}


def _resolved(value: Any, results: Sequence[str]) -> Any:
    if isinstance(value, Mapping):
        return resolved(value, results)
    if isinstance(value, list):
        return [_resolved(each, results) for each in value]
    if not isinstance(value, str):
        return value
    text = REFERENCE.sub(lambda found: _found(found[2], int(found[1]), results), value)
    return int(text) if text.isdecimal() and REFERENCE.fullmatch(value) else text


def _found(expression: str, step: int, results: Sequence[str]) -> str:
    found = re.search(expression, results[step - 1]) if step <= len(results) else None
    return NOT_FOUND if found is None else found[found.re.groups and 1]


def _placed(text: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", place)
    return text
