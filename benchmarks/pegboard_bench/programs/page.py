"""The section of the benchmark page on programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.programs.break_even import CALL, FOUND, LOOKS, PRINTED, PROGRAM, SEARCH
from pegboard_bench.programs.health import AT_ONCE, HOSTILE

GOAL_MS = 100


def section(result: Mapping[str, Any]) -> str:
    figures: Mapping[str, float] = result["figures"]

    def share_of(value: float) -> str:
        return f"{value:.0%}".replace("%", " %")

    def share(name: str) -> str:
        return share_of(figures[name])

    def times(name: str) -> str:
        return f"{figures[name]:.2f}"

    boards = {"ten": "10", "hundred": "100", "all": "800"}
    parts = "\n".join(
        f"| {tools} | {size} | {times(f'tokens_over_single/{size}/{board}')} | "
        f"{times(f'bill_over_single/{size}/{board}')} | {times(f'tokens_over_parallel/{size}/{board}')} | "
        f"{times(f'bill_over_parallel/{size}/{board}')} |"
        for board, tools in boards.items()
        for size in ("small", "large")
    )
    calls = "\n".join(
        f"| {number} | {times(f'tokens_over_single/calls-{number}')} | {times(f'bill_over_single/calls-{number}')} | "
        f"{times(f'tokens_over_parallel/calls-{number}')} | {times(f'bill_over_parallel/calls-{number}')} | "
        f"{figures[f'seconds/single/calls-{number}']:.2f} | {figures[f'seconds/program/calls-{number}']:.2f} |"
        for number in (1, 2, 4, 8)
    )
    watched = [name for name in HOSTILE if f"healthz_longest_s/{name}" in figures]
    waits = ", ".join(f"{name} {1000 * figures[f'healthz_longest_s/{name}']:.0f} ms" for name in watched)
    busy = figures.get("load/hostile")
    longest = max((figures[f"healthz_longest_s/{name}"] for name in watched if name != "idle"), default=0.0)
    goal = f" The goal of {GOAL_MS} ms is {'reached' if longest * 1000 <= GOAL_MS else 'missed'}."
    load = "" if busy is None else f" Others used the machine too: {busy:.0f} processes wanted to run on its cores."
    return f"""## Programs instead of round trips

`{result["command"]}`, {result["date"][:10]}. {figures["tasks"]:.0f} tasks of one to eight calls
over five real servers (git, filesystem, memory, time, everything), on boards of 10, 100 and 800 tools, the rest of
which are definitions recorded from real tools: {figures["cells"]:.0f} cases. Each task is done with single calls and
with [one program](programs.md); both are made on the largest board and counted on all three. Calls, programs and the
reading of results are written by hand: **no model took part**, so this says what right programs cost, not how often a
model writes them. Where a tool's definition does not say the form of its result, a short program looks at one first.

Tokens are those of all requests of a conversation: definitions, searches, calls, results, answers. The bill is the same
with a prompt cache that is empty at first (read 0.1, written 1.25, output 5). *Calls* are one for each request;
*parallel* are independent calls in one request.

Right: single calls {share("success/single")}, programs {share("success/program")}. Tasks of several calls, all boards:
a program takes {times("tokens_over_single/several")} × the tokens of single calls and
{times("bill_over_single/several")} × the bill (median of the cases {times("tokens_over_single/median")} and
{times("bill_over_single/median")}); of parallel calls {times("tokens_over_parallel/several")} × and
{times("bill_over_parallel/several")} ×.

| tools | results | tokens over calls | bill over calls | tokens over parallel | bill over parallel |
|---|---|---|---|---|---|
{parts}

| calls | tokens over calls | bill over calls | tokens over parallel | bill over parallel | s, calls | s, program |
|---|---|---|---|---|---|---|
{calls}

The break-even rule is judged on half of the families of tasks, given the calls and the size of results of each. It is
right if it says "pays" where the program costs at most 0.8 of single calls, with a quarter of all programs written
twice. Its constants were set before any run, after a trial with tasks of two calls: {CALL:.0f} tokens for a call,
{PROGRAM:.0f} for a program, {PRINTED:.0f} printed, a look in {share_of(LOOKS)} of the tasks. In the other half of the
families they are {figures["fit/call"]:.0f}, {figures["fit/program"]:.0f}, {figures["fit/printed"]:.0f} and
{share("fit/looks")}; they were left as they were. That the rule counts the whole bill, with the definitions, which an
empty cache has to be given, and the search ({SEARCH + FOUND:.0f} tokens; none at ten tools), was decided after a run of
the rule without both, with what it had got wrong in view.

| | right |
|---|---|
| told the calls and sizes by its settings | {share("rule_right/cost")} |
| the same at 10 tools, 100, 800 | {", ".join(share(f"rule_right/{name}") for name in boards)} |
| the same on that other half | {share("rule_right/fitted")} |
| not told the calls: none at ten tools | {share("rule_right/shipped")} |
| not told the calls, against parallel ones | {share("rule_right/shipped-parallel")} |

At ten tools a program would pay in {share("pays/ten")} of these cases, which have up to eight calls and long results.
That it is not offered there unless the settings say that tasks need many calls is a decision, as tasks on such boards
rarely do, and no finding.

While {AT_ONCE} hostile programs of a kind run at the same time, the longest answer of `/healthz` takes:
{waits}.{goal}{load}
"""
