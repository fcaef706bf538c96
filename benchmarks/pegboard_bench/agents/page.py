"""The section of `agents.json`: agents of thirty turns, beside other ways to give them tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

NAMES: Mapping[str, str] = {
    "full": "all tools each time",
    "attention/native": "Pegboard, `attention`, native",
    "attention/text": "Pegboard, `attention`, text",
    "hybrid/native": "Pegboard, `hybrid`, native",
    "hybrid/text": "Pegboard, `hybrid`, text",
    "llm_selector": "LLMToolSelectorMiddleware, 5 tools",
    "bigtool": "langgraph-bigtool, 5 tools",
}
INTRODUCTION = """## Agents of thirty turns

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder with the set real120. {measured}.

A LangChain agent goes through a conversation of thirty asks, written for this, over the 120 tools of real120: schemas
as recorded, executors in the process, five orders of the asks. Figures are medians over the orders, with the least and
the most in brackets. Tokens are cl100k of everything that is sent, history included.

The model follows one rule, and is no language model: it knows which tool an ask takes. One that it was given it calls.
One whose name it only sees in the summaries it calls too, three times at most. With a tool that finds tools it asks
that for the user's words. Else it asks the user. What a language model would make of each way is not measured here.

LLMToolSelectorMiddleware asks a model of its own before each request; that model is always right here, so its recall is
1 by assumption, and its requests, which no cache or bill below has in it, are what it costs. langgraph-bigtool 0.0.3
calls a method that LangGraph 1 no longer has; one that does the same for tools without injected arguments stands in its
place. It searches with the same encoder.

| way | requests a turn | selecting | input tokens a turn | selecting | tools, a request | given at once | called |
|---|---|---|---|---|---|---|---|
"""
CACHE = """
### The prompt cache

What two providers' caches give, [simulated by their published rules](prompt-cache.md), with half a minute between asks:
the share of input tokens that is read, and what a turn is billed, in tokens of plain input. Tool Attention (§5.6)
has {paper_text:.0%} for its layout, and {paper_full:.0%} for all schemas where the list of tools keeps changing; here
the full list never does, which is the cache's best case.

| way | same prefix throughout | read, gpt-5.4 | billed | read, claude-sonnet-5 | billed |
|---|---|---|---|---|---|
"""
TRADE = """
`text` keeps every prefix byte for byte (checked in each conversation), and what it showed stays in the history: more is
sent, and nearly all of it is read from the cache. Thirty asks for thirty different tools are the worst case for it: in
the end most of the schemas are there. Which of the two is billed less depends on the provider and on how many different
tools a conversation comes to need; beside a list of all tools that stays in the cache neither saves much here.
"""
GATE = """
### The gate

In how many turns a call was refused because its tool was not active, and what came of those turns. The paper has a
trigger in 2.3% of the turns, 78% of them recovered and 22% ended with a question. Triggers are far more here: what is
not among the given tools the model calls by its name in the summaries, and does not make do with another one. It
insists, and after the second refusal [the selection is wider](langchain.md#the-gate): every turn recovers.

| way | triggered | recovered | asked the user |
|---|---|---|---|
"""
LIVE = """
### Live servers

Thirty asks over real MCP servers (git, time, fetch, everything, filesystem, memory, playwright), each a process of its
own, and real calls.

| way | requests | input tokens a turn | given at once | called | gate | recovered | read, gpt-5.4 | prefix kept |
|---|---|---|---|---|---|---|---|---|
"""
OVERHEAD = """
### What the middleware takes

Milliseconds of `before_model`, median and 95th percentile, for texts that are new and texts that came before, on
generated catalogs, in turns with the encoder alone.

| tools | rendering | new text | text that came before | encoder alone |
|---|---|---|---|---|
"""
MEMORY = """
A conversation of three turns takes {full:.0f} KB of the process without the middleware, {native:.0f} KB with `native`
and {text:.0f} KB with `text`, checkpoints in memory included.
"""


def section(results: Mapping[str, Any]) -> str:
    figures = results["figures"]
    here = [name for name in NAMES if f"turn_ms/real120/{name}" in figures]
    head = INTRODUCTION.format(command=results["command"], measured=measured(results))
    parts = [head, *(_row(figures, name) for name in here)]
    parts += [CACHE.format(paper_text=0.84, paper_full=0.22), *(_cached(figures, name) for name in here), TRADE]
    parts += [GATE, *(_gated(figures, name) for name in here if f"gate_recovered/real120/{name}" in figures)]
    live = [name for name in NAMES if f"turn_ms/live/{name}" in figures]
    if live:
        parts += [LIVE, *(_live(figures, name) for name in live)]
    sizes = sorted({int(name.split("/")[1]) for name in figures if name.startswith("overhead_p50_ms/")})
    parts += [OVERHEAD, *(_added(figures, f"{size}/{way}") for size in sizes for way in ("native", "text"))]
    parts += [MEMORY.format(**{way: figures[f"session_kb/{way}"] for way in ("full", "native", "text")})]
    return "".join(parts)


def _row(figures: Mapping[str, float], name: str) -> str:
    where = f"real120/{name}"
    cells = [
        f"{figures[f'requests_per_turn/{where}']:.2f}",
        f"{figures[f'selecting_requests_per_turn/{where}']:.2f}",
        _spread(figures, "input_tokens_per_turn", where),
        _spread(figures, "selecting_tokens_per_turn", where),
        f"{figures[f'tool_tokens_per_request/{where}']:,.0f}",
        f"{figures[f'recall_at_first_sight/{where}']:.2f}",
        f"{figures[f'recall_called/{where}']:.2f}",
    ]
    return f"| {NAMES[name]} | {' | '.join(cells)} |\n"


def _spread(figures: Mapping[str, float], what: str, where: str) -> str:
    value = figures[f"{what}/{where}"]
    least, most = (figures[f"{what}_{end}/{where}"] for end in ("least", "most"))
    return f"{value:,.0f} [{least:,.0f}-{most:,.0f}]" if value else "0"


def _cached(figures: Mapping[str, float], name: str) -> str:
    where = f"real120/{name}"
    cells = [
        cell
        for provider in ("openai", "anthropic")
        for cell in (
            f"{figures[f'cache_read_share/{where}/{provider}']:.0%}",
            f"{figures[f'billed_tokens_per_turn/{where}/{provider}']:,.0f}",
        )
    ]
    return f"| {NAMES[name]} | {_yes(figures, where)} | {' | '.join(cells)} |\n"


def _gated(figures: Mapping[str, float], name: str) -> str:
    cells = [f"{figures[f'gate_{what}/real120/{name}']:.1%}" for what in ("triggered", "recovered", "asked_user")]
    return f"| {NAMES[name]} | {' | '.join(cells)} |\n"


def _live(figures: Mapping[str, float], name: str) -> str:
    where = f"live/{name}"
    cells = [
        f"{figures[f'requests_per_turn/{where}']:.2f}",
        f"{figures[f'input_tokens_per_turn/{where}']:,.0f}",
        f"{figures[f'recall_at_first_sight/{where}']:.2f}",
        f"{figures[f'recall_called/{where}']:.2f}",
        f"{figures[f'gate_triggered/{where}']:.1%}",
        f"{figures[f'gate_recovered/{where}']:.0%}" if f"gate_recovered/{where}" in figures else "",
        f"{figures[f'cache_read_share/{where}/openai']:.0%}",
        _yes(figures, where),
    ]
    return f"| {NAMES[name]} | {' | '.join(cells)} |\n"


def _yes(figures: Mapping[str, float], where: str) -> str:
    return "yes" if figures[f"prefix_kept/{where}"] else "no"


def _added(figures: Mapping[str, float], where: str) -> str:
    size, rendering = where.split("/")
    times = [
        f"{figures[f'overhead_p50_ms/{where}/{which}']:.1f} [{figures[f'overhead_p95_ms/{where}/{which}']:.1f}]"
        for which in ("new", "again")
    ]
    return f"| {size} | {rendering} | {' | '.join(times)} | {figures[f'encoder_p50_ms/{where}']:.1f} |\n"
