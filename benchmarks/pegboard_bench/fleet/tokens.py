"""Tokens of the board, of what each exposure lists of it, and of finding and calling a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pegboard.catalog import BpeCounter, compact_json
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.fleet.gateways import PATIENT, called, gateway, listed, server, settled

Exposure = Literal["eager", "static", "dynamic", "native"]
EXPOSURES: tuple[Exposure, ...] = ("eager", "native", "dynamic", "static")

QUERIES = (
    "list the open merge requests of a GitLab project",
    "take a screenshot of a web page",
    "create a page in Notion",
    "run an aggregation on a MongoDB collection",
    "draw a bar chart",
    "list the pods of a namespace",
    "show the commit history of a repository",
    "storage accounts of a subscription",
    "read a file",
    "why did the build fail",
)
TOOL, ARGUMENTS = "get_current_time", {"timezone": "Etc/UTC"}
"""A call that needs nothing but its own server."""

COUNTER = BpeCounter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Tokens: ``start`` is what the client is listed, in canonical form, ``sent`` the same as it is sent.

    ``search`` is a search and its answer (the median of several), ``added`` the definitions it adds to the list.
    ``describe_invoke`` is both calls and their answers, ``direct`` a call by the tool's own name and its answer.
    """

    tools: int
    start: int
    sent: int
    search: float
    added: float
    describe_invoke: int
    direct: int


async def spent(config: Path, state: Path, exposure: Exposure) -> Spent:
    """Raises RuntimeError where a call fails."""
    async with gateway(config, state, exposure=exposure, start_wait=PATIENT) as client:
        await settled(client)
        first = await listed(client)
        searches, added = [], []
        before = canonical(first)
        for query in QUERIES:
            searches.append(await _round_trip(client, "search_tools", {"query": query}))
            after = canonical(await listed(client))
            added.append(after - before)
            before = after
        describe = await _round_trip(client, "describe_tools", {"names": [TOOL]})
        invoke = await _round_trip(client, "invoke_tool", {"name": TOOL, "arguments": ARGUMENTS})
        direct = await _round_trip(client, TOOL, ARGUMENTS)
        return Spent(
            tools=len(first),
            start=canonical(first),
            sent=sum(COUNTER.count([compact_json(tool) for tool in first])),
            search=median(searches),
            added=median(added),
            describe_invoke=describe + invoke,
            direct=direct,
        )


async def described(name: str, spec: ServerSpec) -> dict[str, Any]:
    """What a server lists without any gateway."""
    async with server(spec) as client:
        tools = await listed(client)
        version = client.server_info.version if client.server_info else ""
        return {
            "name": name,
            "version": version,
            "protocol": str(client.protocol_version),
            "tools": len(tools),
            "tokens": canonical(tools),
        }


def canonical(tools: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of definitions in the form that every figure of tokens is about."""
    kept = [{key: tool.get(key, "") for key in ("name", "description", "inputSchema")} for tool in tools]
    return sum(COUNTER.count([compact_json(tool) for tool in kept]))


async def _round_trip(client: Any, name: str, arguments: Mapping[str, Any]) -> int:
    """What a model writes to call, and reads as the answer."""
    result = await called(client, name, arguments)
    call = compact_json({"name": name, "arguments": arguments})
    return sum(COUNTER.count([call, *(part.get("text", "") for part in result["content"])]))
