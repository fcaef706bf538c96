"""The section of `adapters.json`: agents of frameworks behind their adapters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

HEAD = """## Agent frameworks

Written by `{command}`. {measured}. Agents of {frameworks:.0f} frameworks over {tools:.0f} tools behind
[their adapters](adapters.md), each in an environment of its own, with a model that is a function of what it is shown.

- **offered**: turns of 20 in which the tool that the ask needs was among the model's tools, and the run ended with it.
- **most shown**: tools of the largest of these requests, `search_tools` and control tools included.
- **gate**: a call of a tool that was not shown did not run, and was answered with the error.
- **way back**: a tool that was left out was shown after a search, and ran.
- **streamed**: the answer reached the user in parts, after a refusal and a call.
- **several agents**: an agent handed off to another, which was offered what it needed, and ended.
- **leaks, errors**: 200 requests at once, each with one of four sets of rights and a call that it has no right to; a
  leak is a tool without a right that was shown or ran.

| framework | offered | most shown | gate | way back | streamed | several agents | leaks | errors |
|---|---|---|---|---|---|---|---|---|
"""
TIMES = """
What an adapter adds to a turn over {tools:.0f} tools: reading the framework's tools and messages, and the board's
decision; the encoder has seen the asks before. Processor is that of all threads, the median of 15 rounds of 20 turns
with the lowest and highest round; wall is the median turn with its quartiles. Load is the machine's (processes that
want to run, on {cores} cores) when the framework's run began: what exceeds the cores is other work that ran beside, and
makes each of these times longer. The goal is {goal:.0f} ms of processor: {met} of {frameworks:.0f} adapters met it.

| framework | processor, ms | lowest to highest | wall, ms | quartiles | load |
|---|---|---|---|---|---|
"""
OTHERS = """
What the agents were offered and did is of {date} (`{commit}`); the times were measured again.
"""
GOAL_MS = 2.0
YES = ("gated", "found", "streamed", "handed_over")
FAILED = """
These parts ended with an error:

"""


def section(results: Mapping[str, Any]) -> str:
    figures, table = results["figures"], results["tables"]["frameworks"]
    head = HEAD.format(command=results["command"], measured=measured(results), **_counts(figures))
    rows = "".join(_row(name, of["release"], figures) for name, of in table.items())
    met = sum(figures.get(f"processor_ms/{name}", GOAL_MS + 1) <= GOAL_MS for name in table)
    times = TIMES.format(cores=results["machine"]["cores"], goal=GOAL_MS, met=met or "none", **_counts(figures))
    if (others := results["tables"].get("others_of")) is not None:
        times = OTHERS.format(date=others["date"][:10], commit=others["commit"][:8]) + times
    times += "".join(_time_row(name, of) for name, of in table.items() if of["added_time"].get("wall_ms"))
    failed = [f"- {name}, {part}: `{why}`\n" for name, of in table.items() for part, why in of["failed"].items()]
    return head + rows + times + (FAILED + "".join(failed) if failed else "")


def _counts(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: figures[name] for name in ("frameworks", "tools")}


def _row(name: str, release: str, figures: Mapping[str, float]) -> str:
    of = {figure: figures[f"{figure}/{name}"] for figure in ("turns", "offered", "ended", "largest", "leaks", "errors")}
    said = {figure: "yes" if figures[f"{figure}/{name}"] else "**no**" for figure in YES}
    right = min(of["offered"], of["ended"])
    return (
        f"| {release.replace('==', ' ')} | {right:.0f} of {of['turns']:.0f} | {of['largest']:.0f} | {said['gated']} "
        f"| {said['found']} | {said['streamed']} | {said['handed_over']} | {of['leaks']:.0f} | {of['errors']:.0f} |\n"
    )


def _time_row(name: str, of: Mapping[str, Any]) -> str:
    added = of["added_time"]
    low, high = added["processor_ms_rounds"]
    first, middle, third = added["wall_ms"]
    return (
        f"| {name} | {added['processor_ms']:.1f} | {low:.1f} to {high:.1f} | {middle:.1f} | {first:.1f} to {third:.1f} "
        f"| {of['load_before']:.1f} |\n"
    )
