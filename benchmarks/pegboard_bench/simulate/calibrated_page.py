"""The part `calibrated` of the simulation's section: what becomes of the paper's comparison, for a reader of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.simulate.conclusions import signed

MEASURES: Mapping[str, str] = {
    "success": "steps that succeed",
    "whole_task": "whole tasks: all of their steps",
    "cost_usd": "price of the calls that were made",
    "offered_usd": "price of all tools offered (the paper's cost)",
}
CASES: Mapping[str, str] = {
    "as_the_paper": "as the paper: EHRR has the step's text, RAG-MCP the task's",
    "same_step": "both have the step's text",
    "same_task": "both have the task's text",
}
TEXT = """
### The paper's comparison, taken apart

Measured at commit `{commit}` on {date}, in {worlds} worlds, over {steps} steps, by `python -m
pegboard_bench.simulate.calibrated`. The paper counts the prices of *offered* tools as cost, lets EHRR ask with the
step that a model wrote and RAG-MCP with the text of the whole task. Here are the two routers with either text, in
worlds with the facts of LiveMCPBench's public traces (calls of labelled tools fail in 10%, others in 28%; the first,
second and third tool of an offer were called 87, 50 and 39 times) and in the worlds as they were frozen.

| router, text | steps | whole tasks | paid, USD a task | offered, USD a task | steps, frozen | offered, frozen |
|---|---|---|---|---|---|---|
{rows}
EHRR over RAG-MCP, calibrated worlds (the paper: success +112.0% / +136.0%, cost −35.9% / −51.9%):

| | {heads} |
|---|---|---|---|
{changes}
**What a reader of the paper can check.** {verdict}
The paper's own numbers do not agree with each other: its table VI
has 48.4% and 62.1% success for EHRR, its ablation 37.7% for the same system. And LiveMCPBench's own files, with Claude
Sonnet 4, the same encoder and plain similarity over steps that the model writes, have 78.95% success by their judge,
which is above both of EHRR's figures: what the paper calls RAG-MCP was asked with the text of the whole task.
"""


def part(tables: Mapping[str, Any], figures: Mapping[str, float]) -> str:
    """The text; nothing where the part was not measured."""
    of = tables.get("calibrated")
    if of is None:
        return ""
    changes = of["changes"]
    rows = "".join(
        _row(figures, router, text) for text in ("task_text", "sub_task_text") for router in ("rag_mcp", "ehrr")
    )
    compared = "".join(
        f"| {title} | {' | '.join(signed(changes[f'{name}/{case}/calibrated']) for case in CASES)} |\n"
        for name, title in MEASURES.items()
    )
    return TEXT.format(
        commit=of["commit"][:12],
        date=of["date"][:10],
        worlds=of["worlds"],
        steps=of["steps"],
        rows=rows,
        heads=" | ".join(CASES.values()),
        changes=compared,
        verdict=_verdict(changes),
    )


def _row(figures: Mapping[str, float], router: str, text: str) -> str:
    def of(name: str, kind: str) -> float:
        return figures[f"two_by_two/{name}/{router}/{text}/{kind}"]

    cells = [
        f"{of('success', 'calibrated'):.1%}",
        f"{of('whole_task', 'calibrated'):.1%}",
        f"{of('cost_usd', 'calibrated'):.4f}",
        f"{of('offered_usd', 'calibrated'):.4f}",
        f"{of('success', 'frozen'):.1%}",
        f"{of('offered_usd', 'frozen'):.4f}",
    ]
    return f"| `{router}`, {text.replace('_', ' ')} | {' | '.join(cells)} |\n"


def _verdict(changes: Mapping[str, Any]) -> str:
    """Which of the paper's two differences the routing makes, and which the text."""
    paper, same = (
        {name: changes[f"{name}/{case}/calibrated"] for name in ("whole_task", "offered_usd", "cost_usd")}
        for case in ("as_the_paper", "same_step")
    )
    return (
        f"As the paper compares them, whole tasks succeed {signed(paper['whole_task'])}; with the same text "
        f"{signed(same['whole_task'])}. The price of offered tools differs by {signed(paper['offered_usd'])} and "
        f"{signed(same['offered_usd'])}, that of the calls that are made, which is what somebody pays, by "
        f"{signed(paper['cost_usd'])} and {signed(same['cost_usd'])}."
    )
