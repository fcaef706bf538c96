"""What the meta-tools answer: JSON for a model to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pegboard.catalog import compact_json
from pegboard.gateways.mcp import meta_tools
from pegboard.gateways.mcp.signatures import signature
from pegboard.model import JsonObject, Server, Tool, ToolId
from pegboard.retrieval.categories import describe_category
from pegboard.routing import check_arguments
from pegboard.upstreams import ServerStatus

Result = dict[str, Any]

SHORT_DESCRIPTION = 300
META_SCHEMAS: Mapping[str, JsonObject] = {
    each["name"]: each["inputSchema"] for each in [*meta_tools.definitions(""), *meta_tools.routing_definitions()]
}


async def check_meta_arguments(name: str, arguments: JsonObject) -> None:
    """Raises ArgumentsInvalid for a meta-tool called wrongly."""
    await check_arguments(Tool(id=ToolId("pegboard", name), input_schema=META_SCHEMAS[name]), arguments)


def json_result(value: Result) -> Result:
    return {"content": [{"type": "text", "text": compact_json(value)}], "isError": False}


def entry(tool: Tool, name: str, category: str | None = None) -> Result:
    """A tool as a search shows it: enough to call it where its arguments are simple."""
    description = " ".join(tool.description.split())
    short = description if len(description) <= SHORT_DESCRIPTION else f"{description[:SHORT_DESCRIPTION]}…"
    where = {"server": tool.server} | ({"category": category} if category is not None else {})
    return {"name": name, **where, "signature": signature(name, tool), "description": short}


def about(category: str, tools: Sequence[Tool], server: Server | None, said: str | None = None) -> Result:
    """A category as the list of all shows it, with what the configuration says of it, or else what its tools do."""
    described: Result = {"category": category, "tools": len(tools)}
    text = describe_category(tools, server) if said is None else said
    return described | ({"description": text} if text else {})


def not_ready(statuses: Iterable[ServerStatus]) -> Result:
    """Servers whose tools cannot be called now, and why."""
    missing = {status.name: status.reason or status.state for status in statuses if not status.available}
    return {"servers_not_ready": missing} if missing else {}


def has_hints(tool: Tool, wanted: Mapping[str, bool]) -> bool:
    """Whether the tool's annotations are these; one that does not say is taken for the protocol's default.

    Whoever only reads destroys nothing, whatever else is said.
    """
    said = dict(meta_tools.HINTS) | dict(tool.annotations or {})
    if said.get("readOnlyHint"):
        said["destructiveHint"] = False
    return all(bool(said[hint]) == value for hint, value in wanted.items())
