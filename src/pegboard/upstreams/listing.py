"""What a server says of itself and its tools: asked for, and read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter

from pegboard.catalog.ingest import tools_from_list_result
from pegboard.model import JsonObject, Server, ServerName, Tool
from pegboard.seams import Listing
from pegboard.server_spec import ServerSpec
from pegboard.upstreams.limits import Limits, Room

LOGGER = logging.getLogger(__name__)

LOGGER = logging.getLogger(__name__)

ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])

MOST_PAGES = 1000


async def read_listing(name: str, client: Client, seconds: float, limits: Limits) -> Listing:
    """Every page of the listing of the server that is called ``name`` here.

    An empty page is not the end, and an empty cursor is a cursor (M9), but one that came before leads nowhere new. What
    goes beyond the limits is left out, and it is said.

    A page may take ``seconds``. Raises MCPError.
    """
    pages: list[JsonObject] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    room = Room(limits)
    for _ in range(MOST_PAGES):
        request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
        page = await untouched(client, request, seconds)
        pages.append(_within(room, page))
        if room.full:
            LOGGER.warning("Server %s lists %s; the others are left out.", name, room.full)
            break
        cursor = page.get("nextCursor")
        if cursor in seen:
            break
        seen.add(cursor)
    return Listing(introduction=_introduction(client), pages=tuple(pages), protocol=str(client.protocol_version))


def _within(room: Room, page: dict[str, Any]) -> dict[str, Any]:
    """The page as it came, but for what there is no room for."""
    tools = page.get("tools")
    if not isinstance(tools, list):
        return page
    kept = room.taken(tools)
    return page if len(kept) == len(tools) else {**page, "tools": list(kept)}


def server_of(spec: ServerSpec, listing: Listing) -> Server:
    info = listing.introduction.get("serverInfo", {})
    return Server(
        name=ServerName(spec.name),
        description=spec.description or info.get("title", ""),
        title=info.get("title", ""),
        instructions=listing.introduction.get("instructions", ""),
        version=info.get("version", ""),
    )


def tools_of(spec: ServerSpec, listing: Listing) -> tuple[Tool, ...]:
    """The tools that can be called. Raises CatalogError for pages that are no listing."""
    tools = tools_from_list_result(spec.name, listing.pages)
    unusable = {tool.id: reason for tool in tools if (reason := why_unusable(tool, listing.protocol))}
    for tool, reason in unusable.items():
        LOGGER.warning("Tool %s is left out: %s", tool, reason)
    return tuple(tool for tool in tools if tool.id not in unusable)


def why_unusable(tool: Tool, protocol: str) -> str:
    """Why no call of it could succeed, empty where one can.

    A tool with ``taskSupport: required`` is called as a task only (MCP 2025-11-25, tasks), and Pegboard runs none. One
    whose `x-mcp-header` is invalid has to be left out by clients of 2026-07-28 (transports, custom headers).
    """
    execution = tool.definition.get("execution")
    if isinstance(execution, Mapping) and execution.get("taskSupport") == "required":
        return "it can only be called as a task, which Pegboard does not do yet."
    if protocol in MODERN_PROTOCOL_VERSIONS and (invalid := find_invalid_x_mcp_header(tool.input_schema)):
        return f"its x-mcp-header is invalid ({invalid})."
    return ""


async def untouched(
    client: Client, request: types.ClientRequest, seconds: float | None, progress: ProgressFnT | None = None
) -> dict[str, Any]:
    """The result as the dictionary it arrived as (M7)."""
    return await client.session.send_request(
        request,
        ANY_OBJECT,  # type: ignore[type-var]  # a plain dictionary is validated by its adapter all the same
        request_read_timeout_seconds=seconds,
        progress_callback=progress,
    )


def _introduction(client: Client) -> JsonObject:
    """Of either era, in the words of `initialize` (MCP 2025-11-25, lifecycle)."""
    parts: Mapping[str, object] = {
        "serverInfo": _plain(client.server_info),
        "instructions": client.instructions,
        "capabilities": _plain(client.server_capabilities),
    }
    return {name: part for name, part in parts.items() if part is not None}


def _plain(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)
