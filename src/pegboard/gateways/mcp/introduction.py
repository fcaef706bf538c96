"""What a client is told at the beginning, its `instructions`: how the board is used, and what the servers say."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.gateways.mcp.meta_tools import EXECUTE, INVOKE, ROUTE, SEARCH
from pegboard.model import Server
from pegboard.seams import TokenCounter
from pegboard.settings import Exposure

OF_MANY = "This server proxies other MCP servers."
OF_ONE = "Most tools of this server are not listed."
SEARCHING = f"Find their tools with {SEARCH}, then call them with {INVOKE}."
SEARCHING_ONE = f"Find them with {SEARCH}, then call them with {INVOKE}."
LEAST_TOKENS = 12
"""Of a server's instructions: a shorter piece says nothing."""
CUT = "…"


def introduction(servers: Sequence[Server], exposure: Exposure, budget: int, counter: TokenCounter) -> str:
    """The instructions of a gateway before these servers; it names no tool that is not listed under ``exposure``.

    Those of a single server are kept whole. Those of several stand under their servers' names, and take at most
    ``budget`` tokens: what the short ones leave is shared by the long ones.
    """
    if len(servers) == 1:
        return "\n\n".join(filter(None, [_usage(exposure, one=True), servers[0].instructions.strip()]))
    said = {server.name: server.instructions.strip() for server in servers if server.instructions.strip()}
    texts = [f"# {name}\n{text}" for name, text in said.items()]
    return "\n\n".join([_usage(exposure, one=False), *_shared(texts, budget, counter)])


def _usage(exposure: Exposure, *, one: bool) -> str:
    """One line of ours; of one server whose tools are all listed there is nothing to say."""
    about = OF_ONE if one else OF_MANY
    if exposure in ("eager", "native"):
        return "" if one else about
    find = SEARCHING_ONE if one else SEARCHING
    return f"{about} {find.replace(SEARCH, ROUTE).replace(INVOKE, EXECUTE) if exposure == 'route' else find}"


def _shared(texts: Sequence[str], budget: int, counter: TokenCounter) -> list[str]:
    """The texts within the budget, in their order."""
    counts = counter.count(list(texts))
    shares: dict[int, int] = {}
    left = budget
    for place, at in enumerate(sorted(range(len(texts)), key=lambda at: counts[at])):
        shares[at] = min(counts[at], left // (len(texts) - place))
        left -= shares[at]
    return [
        text if shares[at] >= counts[at] else counter.cut(text, shares[at] - 1).rstrip() + CUT
        for at, text in enumerate(texts)
        if shares[at] >= min(counts[at], LEAST_TOKENS)
    ]
