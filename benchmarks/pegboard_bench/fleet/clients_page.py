"""Clients in the fleet's section: what their models saw before and after, and whether calls came through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.results import measured

INTRODUCTION = """
### Clients before the fleet

{measured}; {servers} servers, {tools} tools, {board:,} tokens of definitions.

{clients} real clients, one conversation each way: the model needs a tool of each of three servers. Directly it calls
them; behind Pegboard it searches for each, calls what was found with `invoke_tool`,
and is given the result. The model is a script of ours behind a provider that checks every request. SDK clients have no
model: theirs is taken to be sent the list and all that was said with each request. Tokens are those of all requests of
the conversation (cl100k), `billed` is in tokens of plain input by the provider's rules of prompt caching. Calls are
those whose result the model was given, on stdio and over HTTP.

| client | calls | tokens, direct | tokens, Pegboard | billed, direct | billed, Pegboard |
|---|---|---|---|---|---|
"""
FAILED = """
Directly, these did not get through the conversation, so that there is nothing to compare with:

"""
MISSED = "no answer of "
GROWING = """
What a list that grows is billed: `grows` adds what searches find (`exposure = "dynamic"`), `pushes` what the
conversation makes likely too (`push = true`).

| client | never grows (default) | grows | pushes |
|---|---|---|---|
"""


def section(figures: Mapping[str, float], table: Mapping[str, Any]) -> str:
    clients = table["conversations"]
    names = sorted(clients, key=lambda name: (name not in AGENTS, list(clients).index(name)))
    through = {name for name in names if f"tokens_before/{name}" in figures}
    failed = [name for name in names if "direct" in clients[name] and name not in through]
    head = INTRODUCTION.format(
        measured=measured(table),
        clients=len(clients),
        servers=table["servers"],
        tools=table["tools"],
        board=table["tokens"],
    )
    text = head + "".join(_row(name, figures) for name in names)
    if failed:
        text += FAILED + "".join(_failed(name, clients[name]["direct"]) for name in failed)
    growing = list(_growing(names, figures))
    return text + (GROWING + "".join(growing) if growing else "")


def _row(name: str, figures: Mapping[str, float]) -> str:
    kinds = ("tokens_before", "tokens", "billed_before", "billed")
    cells = (f"{figures[f'{kind}/{name}']:,.0f}" if f"{kind}/{name}" in figures else "" for kind in kinds)
    return f"| {_title(name)} | {figures[f'calls_ok/{name}']:.0%} | {' | '.join(cells)} |\n"


def _failed(name: str, direct: Mapping[str, Any]) -> str:
    """What its provider refused, or else the first of its calls that got no result."""
    first = direct["trouble"].partition("; ")[0]
    if first.startswith(MISSED):
        return f"- {_title(name)}: {first}, of {direct['calls']} calls\n"
    return f"- {_title(name)}: its provider refuses the request ({first})\n"


def _growing(names: list[str], figures: Mapping[str, float]) -> Iterator[str]:
    for name in names:
        found = [figures.get(f"{kind}/{name}") for kind in ("billed", "billed_grows", "billed_pushes")]
        if None not in found[:2]:
            yield f"| {_title(name)} | {' | '.join('' if each is None else f'{each:,.0f}' for each in found)} |\n"


def _title(name: str) -> str:
    return AGENTS[name].title if name in AGENTS else f"`{name}`"
