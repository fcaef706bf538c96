"""The section of `tasks_progressive.json`: ProgressiveMCPBench's tasks by each way, beside what it published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured
from pegboard_bench.whole_tasks import page

INTRODUCTION = """## ProgressiveMCPBench

Written by `{command}`. {measured}.

{tasks} tasks of [ProgressiveMCPBench](https://github.com/geelen/progressivemcpbench) on its own synthetic servers (15
with 104 tools, run by Node without a network), by the ways of [whole tasks](#whole-tasks) (seeds: {seeds}). Its 200
plays of each model are twenty tasks, ten times. One is left out: it asks for versions of libraries, and the server's
tool names a file that the server lacks. Its tasks are in [OpenBench](https://github.com/groq/openbench) (MIT); its
servers' repository names no licence but `ISC` in `package.json`. Neither is part of Pegboard:
`scripts/install_progressive.py` puts them on the user's machine.

What is theirs: requests, answers, servers, results of tools. What is ours: the calls that do a task
([`progressive.toml`](../benchmarks/pegboard_bench/whole_tasks/progressive.toml)), and checks that look for the
published answer in what the agent answers, where the benchmark asks a model to judge. The checks are laxer: more than
was asked for is no failure. An answer that has to be worked out counts as found where the results have what it follows
from.

Published, the mean of nine models:

| way | nearest here | success | tokens a play |
|---|---|---|---|
{published}
`distraction-128` fills up to 128 tools from the servers' 104, so it has no more than all of them: it is `all tools` on
the servers' own board. {model} Tokens here are of what is sent, without the model's own thinking.
"""
ORACLE = """The noisy oracle (right among two tools {right:.1%}, less {less:.2%} a doubling) is fitted to these very
scores, so that its success with the oracle's tools and with all is no finding; what the ways show, what is lost by it
and what it costs, is."""
NEAREST: Mapping[str, tuple[str, str]] = {
    "minimal-tools": ("exactly the task's tools", "oracle"),
    "minimal-servers": ("the servers that have them", ""),
    "distraction-64": ("64 tools", ""),
    "distraction-128": ("128 tools (104)", "all tools"),
    "copilot": ("a search", "a provider's search"),
    "directory": ("a directory of names", "Pegboard, MCP"),
}


def section(written: Mapping[str, Any]) -> str:
    """The section of `tasks_progressive.json` on the page of benchmarks."""
    tables = written["tables"]
    rows = [
        f"| {said} (`{name}`) | {near} | {tables['published'][name]['score']:.1%} "
        f"| {tables['published'][name]['tokens']:,.0f} |\n"
        for name, (said, near) in NEAREST.items()
    ]
    rates = tables["rates"]
    model = ORACLE.format(**rates) if rates else f"The model is {tables['model']}."
    said = {"command": written["command"], "measured": measured(written), "model": model}
    text = INTRODUCTION.format(**said, tasks=tables["tasks"], seeds=tables["seeds"], published="".join(rows))
    return text + page.ways(written)
