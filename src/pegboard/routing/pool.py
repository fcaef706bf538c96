"""Phase 1: the summary pool, which tells the model what exists, within a budget of tokens (seed 000 §4.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pegboard.model import Server, Tokens, Tool
from pegboard.seams import TokenCounter

NAMED = 120
"""Characters of a server's own description that its one line may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    text: str
    tokens: Tokens


def summary_pool(
    tools: Sequence[Tool], servers: Mapping[str, Server], counter: TokenCounter, budget: int | None
) -> Pool:
    """A line a tool while that fits; else the names by server; else a line a server; never above the budget.

    The seed's pool (``budget=None``) grows with the number of tools; this one does not.
    """
    for render in (_line_a_tool, _names_by_server, _line_a_server):
        pool = _counted("\n".join(render(tools, servers)), counter)
        if budget is None or pool.tokens <= budget:
            return pool
    return _as_many_as_fit(list(_line_a_server(tools, servers)), counter, budget or 0)


Render = Callable[[Sequence[Tool], Mapping[str, Server]], Iterable[str]]


def _line_a_tool(tools: Sequence[Tool], _servers: Mapping[str, Server]) -> Iterable[str]:
    for server, of_server in _by_server(tools):
        yield f"[{server}]"
        yield from (tool.summary for tool in of_server)


def _names_by_server(tools: Sequence[Tool], _servers: Mapping[str, Server]) -> Iterable[str]:
    return (f"[{server}] {', '.join(tool.name for tool in of_server)}" for server, of_server in _by_server(tools))


def _line_a_server(tools: Sequence[Tool], servers: Mapping[str, Server]) -> Iterable[str]:
    for server, of_server in _by_server(tools):
        about = " ".join(servers[server].description.split())[:NAMED] if server in servers else ""
        yield f"[{server}] {len(of_server)} tools" + (f": {about}" if about else "")


def _as_many_as_fit(lines: Sequence[str], counter: TokenCounter, budget: int) -> Pool:
    """The longest start of the lines that fits, found by halving, and a word on how many servers are left out."""
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _cut(lines, middle, counter).tokens <= budget else (low, middle - 1)
    pool = _cut(lines, low, counter)
    return pool if pool.tokens <= budget else Pool(text="", tokens=Tokens(0))


def _cut(lines: Sequence[str], kept: int, counter: TokenCounter) -> Pool:
    return _counted("\n".join([*lines[:kept], f"… and {len(lines) - kept} more servers"]), counter)


def _counted(text: str, counter: TokenCounter) -> Pool:
    return Pool(text=text, tokens=Tokens(counter.count([text])[0]))


def _by_server(tools: Sequence[Tool]) -> list[tuple[str, list[Tool]]]:
    return [(server, list(group)) for server, group in groupby(tools, key=lambda tool: tool.server)]
