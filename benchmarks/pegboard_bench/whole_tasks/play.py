"""One task played by one way: an agent's loop, and what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from pegboard_bench.whole_tasks.checks import undone
from pegboard_bench.whole_tasks.doors import Door
from pegboard_bench.whole_tasks.model import Model
from pegboard_bench.whole_tasks.task import Task
from pegboard_bench.whole_tasks.workspace import Workspace

MORE_REQUESTS = 8
"""Requests that a play may have beside three a step: searches, calls, the answer."""
SYSTEM = """You are an assistant who works with tools. Do what the user asks, with as few calls as it takes, then say
what came of it. You work in the folder {root}: files are in {root}/files, the git repository is {root}/repo, the shop's
database is SQLite behind its tools, and what you remember is a knowledge graph behind its tools. Paths that tools take
are absolute. Ask nothing back."""


class Played(TypedDict):
    """As kept: ``undone`` are checks that do not hold, ``missed`` what the model says went wrong, ``kept`` the
    requests (`Sent.kept`)."""

    task: str
    seed: int
    undone: list[str]
    missed: list[str]
    seconds: float
    tokens: int
    kept: dict[str, Any]


def system(space: Workspace, said: str = SYSTEM) -> str:
    return said.format(root=space.root)


def most_requests(task: Task) -> int:
    return 3 * len(task.steps) + MORE_REQUESTS


async def converse(task: Task, door: Door, model: Model, prompt: str) -> str:
    """The agent's loop; what it answered in the end."""
    said = f"{prompt}\n\n{door.instructions}" if door.instructions else prompt
    messages: list[dict[str, Any]] = [{"role": "system", "content": said}, {"role": "user", "content": task.ask}]
    for _ in range(most_requests(task)):
        functions = list(await door.functions())
        body: dict[str, Any] = {"model": model.name, "messages": messages} | ({"tools": functions} if functions else {})
        message = await door.ask(body)
        messages = [*messages, message]
        calls: Sequence[Mapping[str, Any]] = message.get("tool_calls") or ()
        if not calls:
            return str(message.get("content") or "")
        for call in calls:
            text = await _answer(door, call["function"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return ""


async def _answer(door: Door, function: Mapping[str, Any]) -> str:
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        return "The arguments are no JSON."
    if not isinstance(arguments, dict):
        return "The arguments are no object."
    return await door.call(str(function["name"]), arguments)


def judged(
    task: Task, seed: int, space: Workspace, model: Model, *, answer: str, missed: Sequence[str], began: float
) -> Played:
    """What a play that began at ``began`` (`time.perf_counter`) came to."""
    return Played(
        task=task.name,
        seed=seed,
        undone=undone(task.checks, space, answer),
        missed=list(missed),
        seconds=round(time.perf_counter() - began, 3),
        tokens=model.sent.tokens,
        kept=model.sent.kept(),
    )
