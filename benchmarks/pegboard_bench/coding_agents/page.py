"""The section of `coding_agents.json`: real coding agents, directly and through the gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench.results import measured

COUNTS = ("0", "60", "300")
INTRODUCTION = """## Coding agents

Written by `{command}`, after `scripts/install_agents.py`. {measured}.

The agents are those of npm in their own defaults ({versions}), without a terminal, each conversation in a home and a
project of its own, before a provider of ours: it checks every request as the provider's documents say, and plays a
model by a script. Through the gateway: `pegboard serve` with its default configuration and one upstream. {prompts}
ordinary prompts, on each of which the model reads a file, runs a command and answers; one task that reads, edits and
runs a file; with MCP tools one more, that needs two of those in the middle. The tools are sixty of mcp-atlassian's, and
beside them generated ones of another server; the servers run once for all conversations.

- lost: prompts in which a request lacked one of the agent's own tools.
- failed: tasks that are done directly (on the disk, in the issue tracker) and not through the gateway.
- billed: input of all conversations by the provider's rules of prompt caching, requests beside the conversation
  (titles, what to remember) and rounds of searching included, over the same directly. *Apart*: nothing is cached when
  one begins; *close*: they begin a minute after each other, and share what they begin with.
- definitions: the share of the direct bill (apart) that is for definitions of MCP tools. All else is the agent's own
  tools, its instructions and what is said: no gateway can save more than that share.
- searches a task: requests that only the gateway makes, for a tool that it had not shown.

What a language model would make of fewer tools is not measured here: this one calls what its script says, if it was
given the tool, and looks for it where there is something to look with.

| agent | MCP tools | lost | failed | definitions | billed, apart | billed, close | searches a task | requests | tools |
|---|---|---|---|---|---|---|---|---|---|
"""
REFUSED_THERE = "refused"
FEWER = """
In rows with fewer than {prompts} prompts the run was broken off; the tasks were held in all of them.
"""
REFUSED = """
*Refused*: the provider takes no request with so many tools ({why}), so that there is nothing to compare with.
"""
UNEVEN = """
Where a range of tools stands on the left, the agent began some conversations before its MCP server was up, on a machine
that was too busy: what is billed in that row says little.
"""
OWN = """
Three of them find MCP tools by themselves: by default Claude Code, Codex and qwen-code show the model names or nothing,
and a tool of their own that finds the rest. There is little to save for anybody else there, and the gateway leaves them
as they are. The rows *{listed}* are the same agents where they list every tool.
"""


def section(results: Mapping[str, Any]) -> str:
    tables, figures = results["tables"], results["figures"]
    head = INTRODUCTION.format(
        command=results["command"],
        measured=measured(results),
        versions=", ".join(f"{name} {version}" for name, version in tables["versions"].items()),
        prompts=len(tables["prompts"]),
    )
    rows = [
        _row(name, agent, count, figures)
        for name, agent in tables["agents"].items()
        for count in COUNTS
        if count in agent
    ]
    listed = [agent["title"] for name, agent in tables["agents"].items() if name.endswith("_listed")]
    fewer = FEWER.format(prompts=len(tables["prompts"])) if _is_broken_off(tables) else ""
    uneven = UNEVEN if any(len(of["tools"]["direct"]) > 1 for of in _counts(tables)) else ""
    why = next((of["refused"] for of in _counts(tables) if of.get("refused")), "")
    refused = REFUSED.format(why=why) if why else ""
    return (
        head
        + "\n".join(rows)
        + "\n"
        + fewer
        + refused
        + uneven
        + (OWN.format(listed="*, *".join(listed)) if listed else "")
    )


def _is_broken_off(tables: Mapping[str, Any]) -> bool:
    return any(of["prompts"] < len(tables["prompts"]) for of in _counts(tables))


def _counts(tables: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [agent[count] for agent in tables["agents"].values() for count in COUNTS if count in agent]


def _row(name: str, agent: Mapping[str, Any], count: str, figures: Mapping[str, float]) -> str:
    of = agent[count]
    values = (
        agent["title"],
        count,
        f"{figures[f'prompts_lost/{name}/{count}']:.0f} of {of['prompts']}",
        f"{figures[f'tasks_failed/{name}/{count}']:.0f}",
        "" if (share := figures.get(f"definitions_share/{name}/{count}")) is None else f"{share:.0%}",
        *(
            (REFUSED_THERE if of.get("refused") else "")
            if (value := figures.get(f"{figure}/{name}/{count}")) is None
            else f"{value:.{places}f}"
            for figure, places in (("billed_over_direct", 3), ("billed_over_direct_close", 3), ("searches_per_task", 1))
        ),
        _both(of["requests"]),
        f"{_range(of['tools']['direct'])} → {_range(of['tools']['gateway'])}",
    )
    return f"| {' | '.join(values)} |"


def _both(of: Mapping[str, int]) -> str:
    return f"{of['direct']} → {of['gateway']}"


def _range(sizes: list[int]) -> str:
    if not sizes:
        return "none"
    return f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]}-{sizes[-1]}"
