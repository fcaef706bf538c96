"""Reads a server's lists of resources, templates, prompts and skills completely."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal

import mcp_types as types

from pegboard.model import JsonObject
from pegboard.upstreams import Upstream
from pegboard.upstreams.extension_requests import SKILLS, ExtensionRequest, extensions_of
from pegboard.upstreams.server_lists import MOST_PAGES, warn_of_pages, why_unkept

LOGGER = logging.getLogger(__name__)

MOST_WARNED, NAME_CHARACTERS = 1000, 200
"""Names of which it is remembered that they are left out, and how much of each is shown."""

Kind = Literal["resources", "resourceTemplates", "prompts", "skills"]


@dataclass(frozen=True, slots=True)
class ListSpec:
    """How to request a page of a list by its cursor, which capability or extension it needs, and which key identifies
    its items."""

    request: Callable[[str | None], types.ClientRequest | ExtensionRequest]
    capability: str
    identity: str

    def offered(self, capabilities: JsonObject) -> bool:
        """Whether a server with these capabilities has the list."""
        return self.capability in capabilities or self.capability in extensions_of(capabilities)

    def announced(self, capabilities: JsonObject) -> bool:
        """Whether such a server tells of changes of the list. None tells of its skills (SEP-2640)."""
        said = capabilities.get(self.capability)
        return isinstance(said, Mapping) and said.get("listChanged") is True


def _page(cursor: str | None) -> types.PaginatedRequestParams:
    return types.PaginatedRequestParams(cursor=cursor)


def _skills(cursor: str | None) -> ExtensionRequest:
    params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
    return ExtensionRequest(method="skills/list", params=params)


KINDS: Mapping[Kind, ListSpec] = MappingProxyType(
    {
        "resources": ListSpec(lambda cursor: types.ListResourcesRequest(params=_page(cursor)), "resources", "uri"),
        "resourceTemplates": ListSpec(
            lambda cursor: types.ListResourceTemplatesRequest(params=_page(cursor)), "resources", "uriTemplate"
        ),
        "prompts": ListSpec(lambda cursor: types.ListPromptsRequest(params=_page(cursor)), "prompts", "name"),
        "skills": ListSpec(_skills, SKILLS, "uri"),
    }
)


async def read_list(upstream: Upstream, kind: Kind) -> Sequence[JsonObject]:
    """All pages of a list (M9), up to the limits, without items whose names cannot be kept in every store. A cursor
    that repeats ends the list.

    Returns an empty list if the server does not support the request. Raises MCPError, UpstreamError.
    """
    found: list[JsonObject] = []
    cursor: str | None = None
    seen: set[str | None] = {None}
    room = upstream.room()
    for _ in range(MOST_PAGES):
        page = await upstream.request(KINDS[kind].request(cursor))
        found += room.taken(page.get(kind) or [])
        if room.full:
            LOGGER.warning("Server %s lists %s in %s; the rest is left out.", upstream.spec.name, room.full, kind)
            break
        cursor = page.get("nextCursor")
        if cursor in seen:
            break
        seen.add(cursor)
    else:
        warn_of_pages(upstream.spec.name, kind)
    return _kept(upstream.spec.name, kind, found)


def _kept(server: str, kind: Kind, items: Sequence[JsonObject]) -> Sequence[JsonObject]:
    kept = []
    for item in items:
        name = str(item.get(KINDS[kind].identity, ""))
        if reason := why_unkept(name):
            _warn(server, kind, ascii(name)[:NAME_CHARACTERS], reason)
        else:
            kept.append(item)
    return kept


@lru_cache(maxsize=MOST_WARNED)
def _warn(server: str, kind: Kind, name: str, reason: str) -> None:
    """Once for each, as all gateways read the lists, and again from time to time."""
    LOGGER.warning("Of %s of server %s, %s is left out: %s", kind, server, name, reason)
