"""The lists that a server has besides its tools, read to their ends."""

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
    """Every page (M9), as far as there is room; a cursor that came before leads nowhere new.

    A server that has no such list after all has an empty one. Raises MCPError, UpstreamError.
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
            LOGGER.warning("Server %s lists %s in %s; the others are left out.", upstream.spec.name, room.full, kind)
            break
        cursor = page.get("nextCursor")
        if cursor in seen:
            break
        seen.add(cursor)
    return found
