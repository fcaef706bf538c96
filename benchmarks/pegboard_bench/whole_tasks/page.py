"""The section of `tasks.json`: whole tasks by each way to give an agent its tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured
from pegboard_bench.whole_tasks.methods import OURS

NAMES: Mapping[str, str] = {
    "oracle": "only the task's tools (oracle)",
    "all": "all tools",
    "middleware": "Pegboard, LangChain middleware",
    "llm_gateway": "Pegboard, LLM gateway as it comes",
    "llm_gateway_call_tool": "Pegboard, LLM gateway with `call_tool` among its ways",
    "llm_gateway_filter_only": "Pegboard, LLM gateway with `way_back = false`",
    "mcp_static": "Pegboard, MCP `static`",
    "mcp_dynamic": "Pegboard, MCP `dynamic`",
    "bm25_search": "a provider's search, BM25",
    "regex_search": "a provider's search, regular expressions",
    "langchain_selector": "LangChain's selector, 5 tools",
    "fastmcp_search": "FastMCP's search",
}
BOARDS: Mapping[str, str] = {
    "servers": "The servers' own {tools} tools (`servers`)",
    "plus128": "With 128 distractors of other public servers, {tools} tools (`plus128`)",
}
GOAL_SUCCESS, GOAL_TOKENS = 0.01, 1.3
INTRODUCTION = """## Whole tasks

Written by `{command}`. {measured}. {model}.

{tasks} tasks over seven MCP servers from npm and PyPI (filesystem, git, SQLite, memory, time, fetch, everything), each
played from a fresh folder (seeds: {seeds}). Whether a task was done is read from files, git, rows, the memory and the
answer, never from the calls. All ways play the same tasks with the same seeds; intervals are of 95%, by resampling
tasks. Tokens are cl100k of everything that is sent, history and selecting models included. Bills follow the providers'
rules of [prompt caching](prompt-cache.md) for one user who asks for one task a minute, over those of all tools.
"""
ORACLE = """The model is no language model: a noisy oracle knows the calls of a task, and makes a wrong one as often as
the mean of nine models did in [ProgressiveMCPBench](https://github.com/geelen/progressivemcpbench): right among two
tools {right:.1%}, less {less:.2%} for each doubling of their number, and it searches for {search:.1%} of what it
lacks{named}. What it draws is the same for all ways, and it does not recover from a wrong call"""
NAMED = """ and cannot read the name of; where a search or the system prompt lists the name, it gets at {named:.1%}, as
models did with that benchmark's directory of names ([decision 54](decisions/0054-names-in-reach.md))"""
HEAD = """
{board}:

| way | success | minus oracle | minus all tools | tokens a task | over oracle | requests | billed, gpt-5.4 | sonnet-5 |
|---|---|---|---|---|---|---|---|---|
"""
GOAL = """
**Goal**, the LLM gateway as it comes within one point of the oracle's success at no more than {goal} times its tokens:
{verdicts}. No way of Pegboard's below all tools by more than its interval: {floor}.
"""
LOSSES = """
Plays that failed though the same luck did it with the oracle's tools, by way, with the tool that was missed (all of
them are in the results file, with what was not done):

"""


def section(written: Mapping[str, Any]) -> str:
    """The section of `tasks.json` on the page of benchmarks."""
    tables = written["tables"]
    rates = tables["rates"]
    named = NAMED.format(**rates) if "named" in rates else ""
    model = ORACLE.format(**rates | {"named": named}) if rates else f"The model is {tables['model']}"
    said = {"command": written["command"], "measured": measured(written), "model": model}
    return INTRODUCTION.format(**said, tasks=tables["tasks"], seeds=tables["seeds"]) + ways(written)


def ways(written: Mapping[str, Any]) -> str:
    """A table of each board, the goal, and what was lost by each way."""
    shown, tables = written["figures"], written["tables"]
    boards = [board for board in BOARDS if f"success/all/{board}" in shown]
    text = ""
    for board in boards:
        methods = [name for name in NAMES if f"success/{name}/{board}" in shown]
        text += HEAD.format(board=BOARDS[board].format(tools=tables["tools"][board]))
        text += "".join(_row(shown, name, board) for name in methods)
    return text + _goal(shown, boards) + LOSSES + _losses(tables, boards)


def _row(shown: Mapping[str, float], name: str, board: str) -> str:
    where = f"{name}/{board}"
    cells = [
        _spread(shown, "success", where, "{:.1%}"),
        _spread(shown, "success_minus_oracle", where, "{:+.1%}"),
        _spread(shown, "success_minus_all", where, "{:+.1%}"),
        f"{shown[f'tokens/{where}']:,.0f}",
        f"{shown[f'tokens_over_oracle/{where}']:.2f}",
        f"{shown[f'requests/{where}']:.1f}",
        f"{shown[f'billed_over_all/{name}/gpt-5.4/{board}']:.2f}",
        f"{shown[f'billed_over_all/{name}/claude-sonnet-5/{board}']:.2f}",
    ]
    return f"| {NAMES[name]} | {' | '.join(cells)} |\n"


def _spread(shown: Mapping[str, float], what: str, where: str, form: str) -> str:
    low, high = (form.format(shown[f"{what}_{end}/{where}"]) for end in ("low", "high"))
    return f"{form.format(shown[f'{what}/{where}'])} [{low}, {high}]"


def _goal(shown: Mapping[str, float], boards: list[str]) -> str:
    verdicts = []
    for board in boards:
        where = f"llm_gateway/{board}"
        if f"success/{where}" not in shown:
            return ""
        lost, over = -shown[f"success_minus_oracle/{where}"], shown[f"tokens_over_oracle/{where}"]
        met = "met" if lost <= GOAL_SUCCESS and over <= GOAL_TOKENS else "missed"
        verdicts.append(f"{met} on `{board}` ({100 * lost:.1f} points, {over:.1f} times)")
    below = [
        f"{name} on `{board}`"
        for board in boards
        for name in OURS
        if shown.get(f"success_minus_all_high/{name}/{board}", 0.0) < 0
    ]
    floor = f"missed by {', '.join(below)}" if below else "held"
    return GOAL.format(goal=GOAL_TOKENS, verdicts="; ".join(verdicts), floor=floor)


def _losses(tables: Mapping[str, Any], boards: list[str]) -> str:
    lines = []
    for board in boards:
        for name, lost in tables["losses"].get(board, {}).items():
            what = sorted({f"{each['task']} ({', '.join(each['missed']) or 'no miss'})" for each in lost})
            if what:
                lines.append(f"- {NAMES[name]}, `{board}`, {len(lost)}: {'; '.join(what)}\n")
    return "".join(lines)
