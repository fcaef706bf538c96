"""Reads what a server says of itself and its tools, and remembers it for the next start."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.shared.inbound import find_invalid_x_mcp_header
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from pegboard.catalog.ingest import tools_from_list_result
from pegboard.errors import ConfigError
from pegboard.model import JsonObject, Server, ServerName, Tool
from pegboard.protocols import Definitions, Listing
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.extension_requests import TASKS, accepts_tasks, extensions_of
from pegboard.upstreams.limits import ListBudget, UpstreamLimits
from pegboard.upstreams.raw_requests import untouched

LOGGER = logging.getLogger(__name__)

MOST_PAGES = 1000
MOST_WARNED = 1000
"""Lists of which it is remembered that they have more pages."""
UNKEPT = re.compile("[\\0\\ud800-\\udfff]")
MOST_NAME_BYTES = 1_000
"""Of a tool's name: longer keys are refused by PostgreSQL's indexes. MCP advises 128 characters."""
PATIENCE = 2.0
"""Maximum seconds to wait for the store, even while shutting down."""


class ListingCache:
    """The last listing of one server for one ``user``, in a store. Failures of the store are logged and ignored: it is
    only a cache."""

    def __init__(
        self, store: Definitions | None, spec: ServerSpec, environment: Mapping[str, str], user: str = ""
    ) -> None:
        self._store = store
        self._user = user
        self._spec = spec
        self._environment = environment
        self._last = b""

    async def get(self) -> Listing | None:
        key = self._key()
        if self._store is None or key is None:
            return None
        try:
            found = await self._store.get(key)
        except Exception:
            LOGGER.exception("The stored listing of server %s cannot be read", self._spec.name)
            return None
        self._last = b"" if found is None else await asyncio.to_thread(_digest, found)
        return found

    async def put(self, listing: Listing) -> None:
        """Store a listing, even during shutdown: the server then need not start for its list next time."""
        key = self._key()
        if self._store is None or key is None:
            return
        try:
            with anyio.move_on_after(PATIENCE, shield=True):
                digest = await asyncio.to_thread(_digest, listing)
                if digest != self._last:
                    await self._store.put(key, listing)
                    self._last = digest
        except Exception:
            LOGGER.exception("The listing of server %s cannot be stored", self._spec.name)

    def _key(self) -> str | None:
        """None for an invalid configuration: connecting will report why."""
        try:
            server = self._spec.expanded(self._environment).identity()
        except (ConfigError, OSError):
            return None
        return hashlib.sha256(f"{server}\0{self._user}".encode()).hexdigest() if self._user else server


def _digest(listing: Listing) -> bytes:
    """SHA-256; the listing itself would take memory for each user."""
    text = json.dumps([listing.introduction, listing.pages, listing.protocol], default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


async def read_listing(name: str, client: Client, seconds: float, limits: UpstreamLimits) -> Listing:
    """Every page of the tool listing of server ``name``.

    An empty page is not the end, and an empty cursor is a cursor (M9); a repeated cursor ends the listing. Entries
    beyond the limits, and pages beyond `MOST_PAGES`, are dropped with a warning. Each page may take ``seconds``. A
    server that does not announce tools and does not know the request has none (MCP 2025-11-25, server/tools,
    capabilities). Raises MCPError.
    """
    pages: list[JsonObject] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    room = ListBudget(limits)
    for _ in range(MOST_PAGES):
        request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
        try:
            page = await untouched(client, request, seconds)
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND or client.server_capabilities.tools is not None:
                raise
            page = {"tools": []}
        pages.append(_within(room, page))
        if room.full:
            LOGGER.warning("Server %s lists %s; the rest is dropped.", name, room.full)
            break
        cursor = page.get("nextCursor")
        if cursor in seen:
            break
        seen.add(cursor)
    else:
        warn_of_pages(name, "tools")
    return Listing(introduction=_introduction(client), pages=tuple(pages), protocol=str(client.protocol_version))


@lru_cache(maxsize=MOST_WARNED)
def warn_of_pages(server: str, what: str) -> None:
    """Say that a list of ``what`` has more pages than are read. Once, as lists are read again with each change."""
    LOGGER.warning(
        "Server %s lists %s on more than %s pages; the rest is left out. Have it put more of them on a page.",
        server,
        what,
        f"{MOST_PAGES:,}",
    )


def _within(room: ListBudget, page: dict[str, Any]) -> dict[str, Any]:
    """The page without the entries that exceed the limits."""
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
    """The tools that can be called. Raises CatalogError for invalid pages."""
    tools = tools_from_list_result(spec.name, listing.pages)
    capabilities = listing.introduction.get("capabilities") or {}
    unusable = {tool.id: reason for tool in tools if (reason := why_unusable(tool, listing.protocol, capabilities))}
    for tool, reason in unusable.items():
        LOGGER.warning("Tool %s is left out: %s", tool, reason)
    return tuple(tool for tool in tools if tool.id not in unusable)


def why_unusable(tool: Tool, protocol: str, capabilities: JsonObject) -> str:
    """Why no call of the tool could succeed; empty if one can.

    A tool with ``taskSupport: required`` can only be called as a task (MCP 2025-11-25, tasks), where its server says
    that it runs tasks. Clients of 2026-07-28 must reject tools with an invalid `x-mcp-header` (transports, custom
    headers). A name with NUL, or with half of a surrogate pair, or of more than a thousand bytes, cannot be kept in
    every store.
    """
    if reason := why_unkept(tool.id.name):
        return reason
    if (length := len(tool.id.name.encode())) > MOST_NAME_BYTES:
        return f"its name has {length:,} bytes."
    if needs_task(tool) and not (accepts_tasks(capabilities) or TASKS in extensions_of(capabilities)):
        return "it can only be called as a task, and its server does not say that it runs tasks."
    if protocol in MODERN_PROTOCOL_VERSIONS and (invalid := find_invalid_x_mcp_header(tool.input_schema)):
        return f"its x-mcp-header is invalid ({invalid})."
    return ""


def why_unkept(name: str) -> str:
    """Why not every store can keep the name of a tool, prompt or resource; empty if they can."""
    return "its name has NUL or half of a surrogate pair." if UNKEPT.search(name) else ""


def needs_task(tool: Tool) -> bool:
    """Whether the tool can only be called as a task (MCP 2025-11-25, tasks, tool-level negotiation)."""
    execution = tool.definition.get("execution")
    return isinstance(execution, Mapping) and execution.get("taskSupport") == "required"


def _introduction(client: Client) -> JsonObject:
    """A server's introduction in either era, with the field names of `initialize` (MCP 2025-11-25, lifecycle)."""
    parts: Mapping[str, object] = {
        "serverInfo": _plain(client.server_info),
        "instructions": client.instructions,
        "capabilities": _plain(client.server_capabilities),
    }
    return {name: part for name, part in parts.items() if part is not None}


def _plain(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)
