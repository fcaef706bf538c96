"""The running servers, and calls of their tools."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from pegboard.errors import ConfigError
from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.fleet.gateways import ANY, listed, server
from pegboard_bench.whole_tasks.local_site import REFUSAL, Definitions
from pegboard_bench.whole_tasks.workspace import Workspace

Function = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """``definitions`` are those of all servers as MCP lists them; ``clients`` are connected to those that run."""

    definitions: Definitions
    clients: Mapping[str, Client]

    @property
    def ids(self) -> list[ToolId]:
        return [ToolId(name, str(tool["name"])) for name, tools in self.definitions.items() for tool in tools]

    def functions(self) -> list[Function]:
        """All tools in OpenAI's form, each under its server's name and its own."""
        return [function(name, tool) for name, tools in self.definitions.items() for tool in tools]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers, under the name of its function; errors are answers too."""
        where, _, tool = name.partition("__")
        if where not in self.clients:
            return REFUSAL if where in self.definitions else f"Unknown tool: {name}"
        return await called(self.clients[where], tool, arguments)


def function(where: str, tool: Mapping[str, Any]) -> Function:
    """A tool of a server in OpenAI's form."""
    parameters = tool.get("inputSchema") or {"type": "object"}
    said = {"name": f"{where}__{tool['name']}", "description": tool.get("description", ""), "parameters": parameters}
    return {"type": "function", "function": said}


async def called(client: Client, name: str, arguments: Mapping[str, Any]) -> str:
    """The text of a result, or of an error."""
    params = types.CallToolRequestParams(name=name, arguments=dict(arguments))
    try:
        result = await client.session.send_request(types.CallToolRequest(params=params), ANY)  # type: ignore[type-var]
    except MCPError as error:
        return f"Error: {error}"
    return "\n".join(str(part.get("text", "")) for part in result.get("content", ())) or json.dumps(result)


def specs(installed: Path, space: Workspace) -> dict[str, ServerSpec]:
    """The servers of `scripts/install_task_servers.py`, to work on a workspace. Raises ConfigError without them."""
    try:
        programs: Mapping[str, str] = json.loads((installed / "task_servers.json").read_text("utf-8"))
    except OSError as error:
        remedy = f"Run python scripts/install_task_servers.py {installed}."
        raise ConfigError(f"No servers are installed in {str(installed)!r}.", remedy=remedy) from error
    arguments = {
        "filesystem": (str(space.root),),
        "sqlite": ("--db-path", str(space.database)),
        "fetch": ("--ignore-robots-txt", "--allow-private-ips"),
    }
    environment = {"memory": {"MEMORY_FILE_PATH": str(space.memory)}}
    path = os.environ.get("PATH", "")
    return {
        name: ServerSpec(
            name=name,
            command=program,
            args=arguments.get(name, ()),
            env={"PATH": path, **environment.get(name, {})},
            cwd=str(space.root.parent),
        )
        for name, program in sorted(programs.items())
    }


@asynccontextmanager
async def toolbox(servers: Mapping[str, ServerSpec], more: Definitions) -> AsyncIterator[Toolbox]:
    """Started servers, and definitions of more that do not run."""
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(_connected(spec)) for name, spec in servers.items()}
        found: dict[str, Sequence[Mapping[str, Any]]] = {name: await listed(each) for name, each in clients.items()}
        yield Toolbox(definitions=found | dict(more), clients=clients)


def _connected(spec: ServerSpec) -> AbstractAsyncContextManager[Client]:
    return Client(streamable_http_client(spec.url), cache=None) if spec.url else server(spec)
