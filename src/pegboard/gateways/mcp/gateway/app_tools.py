"""Tools with a user interface (MCP Apps, SEP-1865): a host can show it only for a tool that it was listed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pegboard.catalog import Catalog
from pegboard.model import JsonObject, Tool, ToolId

SCHEME = "ui://"
MOST_APPS = 40
"""Tools that are listed for their interface alone, whatever the exposure."""


def app_resource(tool: Tool) -> str | None:
    """The address of the tool's interface, in the present form or in the one of before 2026.

    >>> definition = {"name": "tell", "_meta": {"ui": {"resourceUri": "ui://clock/app.html"}}}
    >>> app_resource(Tool(id=ToolId("clock", "tell"), definition=definition))
    'ui://clock/app.html'
    """
    meta = tool.definition.get("_meta")
    meta = meta if isinstance(meta, Mapping) else {}
    found = _interface(tool).get("resourceUri") or meta.get("ui/resourceUri")
    return found if isinstance(found, str) and found.startswith(SCHEME) else None


def for_apps_alone(tool: Tool) -> bool:
    """Whether only an interface may call the tool (`visibility: ["app"]`), so that no model is told of it."""
    visibility = _interface(tool).get("visibility")
    return isinstance(visibility, list) and "app" in visibility and "model" not in visibility


def is_for_apps(tool: Tool) -> bool:
    """Whether a host of apps needs the tool's definition: it has an interface, or an interface calls it."""
    return app_resource(tool) is not None or for_apps_alone(tool)


def missing_apps(catalog: Catalog, allowed: Collection[ToolId], listed: Sequence[str], names: Any) -> Iterator[Tool]:
    """The tools for apps among the ``allowed`` ones that a listing of these names lacks, in the catalog's order."""
    there, found = frozenset(listed), 0
    for tool in catalog.tools:
        if found < MOST_APPS and tool.id in allowed and names.of[tool.id] not in there and is_for_apps(tool):
            found += 1
            yield tool


def _interface(tool: Tool) -> JsonObject:
    meta = tool.definition.get("_meta")
    found = meta.get("ui") if isinstance(meta, Mapping) else None
    return found if isinstance(found, Mapping) else {}
