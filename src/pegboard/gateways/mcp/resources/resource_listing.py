"""Reads a server's lists of resources, templates and prompts completely."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import mcp_types as types

from pegboard.model import JsonObject
from pegboard.upstreams import Upstream

LOGGER = logging.getLogger(__name__)

MOST_PAGES = 1000

Kind = Literal["resources", "resourceTemplates", "prompts"]


@dataclass(frozen=True, slots=True)
class ListSpec:
    """How to request a list, which capability it needs, and which key identifies its items."""

    request: type[types.ListResourcesRequest | types.ListResourceTemplatesRequest | types.ListPromptsRequest]
    capability: str
    identity: str


KINDS: Mapping[Kind, ListSpec] = MappingProxyType(
    {
        "resources": ListSpec(types.ListResourcesRequest, "resources", "uri"),
        "resourceTemplates": ListSpec(types.ListResourceTemplatesRequest, "resources", "uriTemplate"),
        "prompts": ListSpec(types.ListPromptsRequest, "prompts", "name"),
    }
)


async def read_list(upstream: Upstream, kind: Kind) -> Sequence[JsonObject]:
    """All pages of a list (M9), up to the limits. A cursor that repeats ends the list.

    Returns an empty list if the server does not support the request. Raises MCPError, UpstreamError.
    """
    found: list[JsonObject] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    room = upstream.room()
    for _ in range(MOST_PAGES):
        request = KINDS[kind].request(params=types.PaginatedRequestParams(cursor=cursor))
        page = await upstream.request(request)
        found += room.taken(page.get(kind) or [])
        if room.full:
            LOGGER.warning("Server %s lists %s in %s; the rest is left out.", upstream.spec.name, room.full, kind)
            break
        cursor = page.get("nextCursor")
        if cursor in seen:
            break
        seen.add(cursor)
    return found
