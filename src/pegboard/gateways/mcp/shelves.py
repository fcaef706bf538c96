"""The lists that a server has besides its tools, read to their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import mcp_types as types

from pegboard.model import JsonObject
from pegboard.upstreams import Upstream

Kind = Literal["resources", "resourceTemplates", "prompts"]

MOST_PAGES = 1000


@dataclass(frozen=True, slots=True)
class Shelf:
    """How a list is asked for, who has one, and what tells one thing of it from another."""

    request: type[types.ListResourcesRequest | types.ListResourceTemplatesRequest | types.ListPromptsRequest]
    capability: str
    identity: str


KINDS: Mapping[Kind, Shelf] = MappingProxyType(
    {
        "resources": Shelf(types.ListResourcesRequest, "resources", "uri"),
        "resourceTemplates": Shelf(types.ListResourceTemplatesRequest, "resources", "uriTemplate"),
        "prompts": Shelf(types.ListPromptsRequest, "prompts", "name"),
    }
)


async def read_shelf(upstream: Upstream, kind: Kind) -> Sequence[JsonObject]:
    """Every page (M9). A server that has no such list after all has an empty one. Raises MCPError, UpstreamError."""
    found: list[JsonObject] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        request = KINDS[kind].request(params=types.PaginatedRequestParams(cursor=cursor))
        page = await upstream.request(request)
        found += page.get(kind) or []
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return found
