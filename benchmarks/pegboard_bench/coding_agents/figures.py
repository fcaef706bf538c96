"""The figures of `coding_agents.json`, and what the issue asks of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from pegboard_bench.coding_agents.billing import Rhythm
from pegboard_bench.coding_agents.measure import Case

MOST = 1.02
"""What a conversation may be billed through the gateway, over what it is directly."""


def figures(cases: Sequence[Case]) -> dict[str, float]:
    found: dict[str, float] = {}
    for case in cases:
        name = f"{case.agent.name}/{case.count}"
        found[f"prompts_lost/{name}"] = len(case.lost())
        found[f"tasks_failed/{name}"] = len(case.failed())
        if case.refused:
            continue
        found[f"searches_per_task/{name}"] = case.searches_a_task()
        found[f"definitions_share/{name}"] = case.definitions_share()
        found[f"billed_over_direct/{name}"] = case.over_direct("apart")
        found[f"billed_over_direct_close/{name}"] = case.over_direct("close")
    return found


def tables(cases: Sequence[Case]) -> dict[str, Any]:
    lines: dict[str, dict[str, Any]] = {}
    for case in cases:
        of_agent = lines.setdefault(case.agent.name, {"title": case.agent.title, "model": case.agent.model})
        of_agent[str(case.count)] = case.line()
    return {"agents": lines, "prompts": max((asked(case) for case in cases), key=len, default=[])}


def asked(case: Case) -> list[str]:
    return [session.prompt for session in case.direct.prompts]


def harm(cases: Sequence[Case]) -> Iterator[str]:
    """What the gateway did that it may not do."""
    for case in cases:
        name = f"{case.agent.title}, {case.count} MCP tools"
        yield from (f"{name}: {prompt!r} lost {', '.join(names)}" for prompt, names in case.lost().items())
        yield from (f"{name}: task {task} failed: {why}" for task, why in case.failed().items())
        yield from (f"{name}: directly, {what!r}: {why}" for what, why in case.broken().items())
        for rhythm in () if case.refused else get_args(Rhythm):
            if (over := case.over_direct(rhythm)) > MOST:
                yield f"{name}: conversations that are {rhythm} are billed {over:.3f} times what they are directly"
