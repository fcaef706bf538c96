"""`pegboard mcp` before the whole fleet, as a client of the handshake era starts it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from pydantic import TypeAdapter

from pegboard.settings.server_spec import ServerSpec

ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
PATIENT = 120.0
"""Seconds for a listing to wait for every server."""


@asynccontextmanager
async def gateway(config: Path, state: Path, **settings: object) -> AsyncIterator[Client]:
    """A gateway of its own; ``settings`` are those of `Settings`, ``state`` a folder to keep things in."""
    given = {"cache_dir": state, "state_dir": state, "often_used": 0} | settings
    environment = os.environ | {f"PEGBOARD_{name.upper()}": str(value) for name, value in given.items()}
    arguments = ["-m", "pegboard", "mcp", "--no-attach", "--log-level", "error", "--config", str(config)]
    async with _client(StdioServerParameters(command=sys.executable, args=arguments, env=environment)) as client:
        yield client


@asynccontextmanager
async def server(spec: ServerSpec) -> AsyncIterator[Client]:
    """A server without any gateway."""
    parameters = StdioServerParameters(
        command=spec.command or "", args=list(spec.args), env=os.environ | spec.env, cwd=spec.cwd
    )
    async with _client(parameters, mode="auto") as client:
        yield client


@asynccontextmanager
async def _client(parameters: StdioServerParameters, mode: str = "legacy") -> AsyncIterator[Client]:
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230, PTH123 - it never blocks
        async with Client(stdio_client(parameters, errlog=nowhere), mode=mode, cache=None) as client:
            yield client


async def listed(client: Client) -> list[dict[str, Any]]:
    """Every page, as sent."""
    tools: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
        page = await client.session.send_request(request, ANY)  # type: ignore[type-var]
        tools += page["tools"]
        cursor = page.get("nextCursor")
        if cursor is None:
            return tools


async def called(client: Client, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The result as sent. Raises RuntimeError for one that is an error."""
    params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
    result = await client.session.send_request(types.CallToolRequest(params=params), ANY)  # type: ignore[type-var]
    if result.get("isError"):
        raise RuntimeError(f"{name} failed: {result['content']}")
    return result


def said(result: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON that one of Pegboard's own tools answers."""
    return dict(json.loads(result["content"][0]["text"]))


async def settled(client: Client) -> None:
    """Until every server is ready. Raises RuntimeError for one that will never be."""
    async with asyncio.timeout(PATIENT):
        while missing := said(await called(client, "list_tool_categories", {})).get("servers_not_ready"):
            if broken := {name: why for name, why in missing.items() if why != "starting"}:
                raise RuntimeError(f"Not ready: {broken}")
            await asyncio.sleep(0.1)
