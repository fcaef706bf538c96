"""Methods by which the model itself looks for tools: a search, a route, or a command line.

It searches in the user's own words for the step at hand (`Step.ask`), once for a tool that it does not know yet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from pegboard.catalog import Catalog, canonical_text, compact_json
from pegboard.catalog.ingest import tool_from_mcp
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.gateways.mcp.gateway.clients import ClientKind
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.model import Tool, ToolId
from pegboard.settings import load_settings
from pegboard.upstreams import Fleet
from pegboard_bench.tax.boards import Place, board, parts
from pegboard_bench.tax.request import Sent
from pegboard_bench.tax.tasks import Step, Task
from pegboard_bench.tax.testbeds import Testbed

Exposure = Literal["static", "dynamic", "route"]


class Asking:
    """The MCP gateway, in process, before a client that is listed by ``exposure``.

    Of the tools for routing, those that the paper has: not the one for verdicts, which is ours.
    """

    def __init__(self, place: Place, exposure: Exposure, *, limit: int | None = None, **settings: Any) -> None:
        self._place = place
        self._exposure = exposure
        self._limit = limit
        self._settings = settings
        self._tasks = 0

    async def begin(self, testbed: Testbed) -> None:
        made = await board(testbed, self._place, rules=False, **self._settings)
        of = parts(self._place)
        settings = load_settings(exposure=self._exposure, **self._settings)
        fleet = Fleet({}, connect_timeout=1, call_timeout=1, events=of.events, clock=of.clock)
        self._gateway = Gateway(settings, made, fleet, events=of.events, clock=of.clock)
        self._catalog = testbed.catalog
        self._listed: dict[str, Tool] = {}

    async def play(self, task: Task) -> Sequence[Sent]:
        self._tasks += 1
        caller = Caller(session=f"task-{self._tasks}", kind=ClientKind(list_changed=True), exposure=self._exposure)
        known: set[ToolId] = set()
        found = [await self._step(step, caller, known) for step in task.steps]
        await self._gateway.end_session(str(caller.session))
        return found

    async def _step(self, step: Step, caller: Caller, known: set[ToolId]) -> Sent:
        asked: tuple[tuple[str, ...], ...] = ()
        if not step.serves & known:
            name, arguments = self._call(step.ask)
            result = await self._gateway.call(name, arguments, CallContext(caller=caller))
            answer = str(result["content"][0]["text"])
            known |= self._offered(answer)
            asked = ((compact_json({"name": name, "arguments": arguments}), answer),)
        definitions = await self._gateway.list_tools(caller)
        listed = tuple(self._tool(each) for each in definitions if each["name"] != meta_definitions.REPORT)
        return Sent(tools=listed, asked=asked, reached=frozenset(known))

    def _call(self, ask: str) -> tuple[str, dict[str, Any]]:
        if self._exposure == "route":
            return meta_definitions.ROUTE, {"subtask": {"text": ask}}
        return meta_definitions.SEARCH, {"query": ask} | ({"limit": self._limit} if self._limit else {})

    def _offered(self, answer: str) -> set[ToolId]:
        """The tools that an answer shows with their signatures: those that match, or the nearest ones."""
        said = json.loads(answer)
        named = {(each["server"], each["name"]) for each in (*said.get("tools", ()), *said.get("nearest", ()))}
        return {tool.id for tool in self._catalog.tools if tuple(tool.id) in named}

    def _tool(self, definition: Any) -> Tool:
        """The same object for the same definition."""
        key = compact_json(definition)
        if key not in self._listed:
            self._listed[key] = tool_from_mcp("pegboard", definition)
        return self._listed[key]


ABOUT = """Tools are commands. To see the servers: tools --list. To see the tools of one: tools SERVER --list.
Before you run a tool for the first time: tools SERVER NAME --help. To run it: tools SERVER NAME --json '{...}'.
Servers: """
LINE = 80
"""Characters of a description in a listing."""


class CommandLine:
    """B4: tools as commands of a shell. The model lists a server when it needs it, and asks for help on each new tool.

    That it finds the right server and name in what it is listed is taken for granted: recall is an upper bound.
    """

    async def begin(self, testbed: Testbed) -> None:
        self._catalog = testbed.catalog
        self._about = ABOUT + ", ".join(testbed.catalog.servers)
        self._lists = {server: _listing(testbed.catalog, server) for server in testbed.catalog.servers}

    async def play(self, task: Task) -> Sequence[Sent]:
        servers: set[str] = set()
        known: set[ToolId] = set()
        found = []
        for step in task.steps:
            tool, asked = max(step.serves), list[tuple[str, ...]]()
            if not step.serves & known:
                if tool.server not in servers:
                    asked.append((f"tools {tool.server} --list", self._lists[tool.server]))
                    servers.add(tool.server)
                asked.append((f"tools {tool.server} {tool.name} --help", canonical_text(self._catalog[tool])))
                known |= {tool}
            found.append(Sent(texts=(self._about,), asked=tuple(asked), reached=frozenset(known)))
        return found


def _listing(catalog: Catalog, server: str) -> str:
    return "\n".join(f"{tool.name}  {' '.join(tool.description.split())[:LINE]}" for tool in catalog.of_server(server))
