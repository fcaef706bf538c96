"""Progressive discovery as an extension: groups of tools, filters on `tools/list`, and digests of definitions.

Core MCP has none of it yet. The shapes follow the drafts: `groups/list` and `groups/get` as Google's MCP Toolbox serves
them, filters as in SEP-2564 (and a query, SEP-1821), digests as in SEP-2636 and SEP-2640. Only clients that declare the
extension get any of it, in both eras; to all others the methods do not exist and filters mean nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.model import JsonObject
from pegboard.retrieval.categories import describe_category

EXTENSION = "io.pegboard/progressive-discovery"
DIGEST = "io.pegboard/digest"
"""The key of a tool's `_meta` that holds its digest."""
LIST_GROUPS, GET_GROUP = "groups/list", "groups/get"
METHODS = frozenset({LIST_GROUPS, GET_GROUP})
DIGESTED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What a digest covers: what a model reads, and what decides whether a call is allowed."""
MOST_PATTERNS = 100
MOST_KNOWN = 10_000

Result = dict[str, Any]
Pattern = Annotated[str, Field(min_length=1, max_length=256)]


class ToolFilter(BaseModel):
    """The parameter `filter` of `tools/list`. All its fields have to hold; of a list, one entry has to.

    ``namePatterns`` are globs. ``query`` ranks by what a client wants to do and ``limit`` cuts that. ``known`` are
    digests of definitions that the client has already: their tools are left out.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    namePatterns: list[Pattern] | None = Field(None, max_length=MOST_PATTERNS)  # noqa: N815 - as on the wire
    groups: list[str] | None = Field(None, max_length=MOST_PATTERNS)
    query: str | None = Field(None, min_length=1)
    limit: int | None = Field(None, ge=1)
    known: list[str] | None = Field(None, max_length=MOST_KNOWN)

    def admits(self, tool: JsonObject, group: str) -> bool:
        """Whether a tool with its digest passes every field but ``query`` and ``limit``."""
        named = self.namePatterns is None or any(fnmatchcase(tool["name"], each) for each in self.namePatterns)
        grouped = self.groups is None or group in self.groups
        return named and grouped and (self.known is None or tool["_meta"][DIGEST] not in self.known)


SETTINGS: JsonObject = {"groups": True, "filters": [*ToolFilter.model_fields], "digests": "sha256"}
"""What a server declares under `EXTENSION`."""


def is_declared(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client declares the extension."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and EXTENSION in (capabilities.extensions or {})


async def groups(gateway: Gateway, caller: Caller) -> Result:
    """The answer to `groups/list`: every group with a tool that the caller may use, by name."""
    tools, of = await gateway.permitted(caller)
    members: dict[str, list[JsonObject]] = {}
    for tool, definition in tools.items():
        members.setdefault(of[tool], []).append(definition)
    catalog = gateway.view.catalog
    listed = [
        {
            "name": name,
            "description": describe_category([catalog[tool] for tool in tools if of[tool] == name]),
            "tools": len(there),
            "digest": digest_of(map(digest, there)),
        }
        for name, there in sorted(members.items())
    ]
    return {"groups": listed}


async def group(gateway: Gateway, caller: Caller, params: Mapping[str, Any]) -> Result:
    """The answer to `groups/get`. Raises MCPError for a group that the caller does not have."""
    name = params.get("name")
    tools, of = await gateway.permitted(caller)
    there = [with_digest(definition) for tool, definition in tools.items() if of[tool] == name]
    if not there:
        raise MCPError(types.INVALID_PARAMS, "Group not found", {"name": name})
    return {"name": name, "tools": there}


async def filtered(gateway: Gateway, caller: Caller, wanted: object) -> list[JsonObject]:
    """The tools that pass a filter, with their digests: by relevance if it has a query, else in the catalog's order.

    Raises MCPError for what is no filter.
    """
    chosen = _read(wanted)
    tools, of = await gateway.permitted(caller)
    shown = {tool: with_digest(definition) for tool, definition in tools.items()}
    order: Sequence[Any] = [*shown] if chosen.query is None else await gateway.matching(chosen.query, caller)
    passed = [shown[tool] for tool in order if tool in shown and chosen.admits(shown[tool], of[tool])]
    return passed[: chosen.limit]


def with_digest(definition: JsonObject) -> JsonObject:
    return {**definition, "_meta": {**(definition.get("_meta") or {}), DIGEST: digest(definition)}}


def digest(definition: JsonObject) -> str:
    """The digest of a definition; the order of its keys makes no difference.

    >>> digest({"name": "a", "inputSchema": {}}) == digest({"inputSchema": {}, "name": "a", "_meta": {"x": 1}})
    True
    """
    kept = {key: definition[key] for key in DIGESTED if key in definition}
    return _sha256(json.dumps(kept, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def digest_of(digests: Iterable[str]) -> str:
    """The digest of a set of definitions, by theirs."""
    return _sha256("\n".join(sorted(digests)))


def _sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _read(wanted: object) -> ToolFilter:
    try:
        return ToolFilter.model_validate(wanted)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, ("filter", *first["loc"])))
        raise MCPError(types.INVALID_PARAMS, f"{where}: {first['msg']}", {"filters": SETTINGS["filters"]}) from None
