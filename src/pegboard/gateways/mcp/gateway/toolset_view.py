"""Toolsets: named selections of the board whose tools can be hidden, renamed, redescribed and given preset arguments.

Tools keep their identity, so rules, statistics and routing treat them as before.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pegboard.catalog import Catalog, summarize
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.gateway.meta_definitions import META_TOOLS
from pegboard.model import JsonObject, Tool, ToolId
from pegboard.settings import ToolsetSettings
from pegboard.settings.server_spec import Expander


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetView:
    """One toolset. ``presets`` are by ``server/name``, with variables expanded; they are secret."""

    name: str
    settings: ToolsetSettings
    presets: Mapping[str, JsonObject] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, name: str, settings: ToolsetSettings, environment: Mapping[str, str] | None = None) -> ToolsetView:
        """A toolset from the configuration.

        Raises ConfigError, naming toolset and field, for a reserved name, a duplicate name, and a variable that is not
        set.
        """
        for tool, new in settings.rename.items():
            _check_new_name(name, tool, new, settings.rename)
        known = os.environ if environment is None else environment
        presets = {
            tool: MappingProxyType(_expanded(Expander(f"Toolset {name!r}, preset of {tool!r},", known, "."), given))
            for tool, given in settings.preset.items()
        }
        return cls(name=name, settings=settings, presets=MappingProxyType(presets))

    @property
    def renamed(self) -> Mapping[ToolId, str]:
        """New names by tool, as WireNames.build takes them."""
        return {tool: new for key, new in self.settings.rename.items() for tool in _readings(key)}

    def includes(self, tool: ToolId) -> bool:
        chosen = self.settings
        return (
            (not chosen.servers or tool.server in chosen.servers)
            and (not chosen.tools or any(map(tool.fits, chosen.tools)))
            and not any(map(tool.fits, chosen.hidden))
        )

    def apply(self, catalog: Catalog) -> Catalog:
        """The catalog as this toolset shows it, in the same order, without other tools and servers that have none
        left."""
        tools: dict[str, list[Tool]] = {}
        for tool in catalog.tools:
            if self.includes(tool.id):
                tools.setdefault(tool.server, []).append(self._shown(tool, catalog))
        groups = [(server, tools[name]) for name, server in catalog.servers.items() if name in tools]
        return Catalog.build(groups, counter=catalog.counter)

    def arguments(self, tool: ToolId, given: JsonObject) -> JsonObject:
        """The arguments to send: preset values override the caller's.

        Validate the caller's arguments first, so that no error shows a preset value.
        """
        return {**given, **self.presets.get(str(tool), {})}

    def unmatched(self, catalog: Catalog) -> tuple[str, ...]:
        """Entries of the configuration that match nothing in the catalog, as `field: entry`.

        Servers that have not started yet have no tools: call this when all have.
        """
        chosen = self.settings
        shown = {str(tool.id): tool for tool in catalog.tools if self.includes(tool.id)}
        servers = [name for name in chosen.servers if name not in catalog.servers]
        patterns = {"tools": chosen.tools, "hidden": chosen.hidden, "always_available": chosen.always_available or ()}
        tables = {"rename": list(chosen.rename), "describe": list(chosen.describe), "preset": list(chosen.preset)}
        return (
            *(f"servers: {name}" for name in servers),
            *(f"{part}: {each}" for part, of in patterns.items() for each in of if not _hits(each, catalog, chosen)),
            *(f"{part}: {key}" for part, of in tables.items() for key in of if key not in shown),
            *(f"preset: {key}, argument {name}" for key, name in self._unknown_arguments(shown)),
        )

    def _shown(self, tool: Tool, catalog: Catalog) -> Tool:
        key = str(tool.id)
        new_name, text = self.settings.rename.get(key), self.settings.describe.get(key)
        if new_name is not None:
            tool = replace(tool, aliases=(*tool.aliases, new_name))
        if text is not None:
            tool = replace(tool, description=text, definition={**tool.definition, "description": text})
        if self.presets.get(key):
            schema = without_arguments(tool.input_schema or {"type": "object"}, self.presets[key].keys())
            tool = replace(tool, input_schema=schema, definition={**tool.definition, "inputSchema": schema})
        if new_name is None and text is None:
            return tool
        called = replace(tool, id=ToolId(tool.server, new_name or tool.name))
        return replace(tool, summary=summarize(called, catalog.counter))

    def _unknown_arguments(self, shown: Mapping[str, Tool]) -> Iterator[tuple[str, str]]:
        for key, given in self.presets.items():
            schema = shown[key].input_schema if key in shown else None
            properties = (schema or {}).get("properties")
            if isinstance(properties, Mapping):
                yield from ((key, name) for name in given if name not in properties)


def _check_new_name(toolset: str, tool: str, new: str, rename: Mapping[str, str]) -> None:
    where = f"Toolset {toolset!r}, rename: {tool!r}"
    if new in META_TOOLS:
        raise ConfigError(
            f"{where} cannot be called {new!r}, which is the name of a Pegboard tool.", remedy="Choose another name."
        )
    if twins := [other for other, name in rename.items() if name == new and other != tool]:
        raise ConfigError(f"{where} and {twins[0]!r} are both called {new!r}.", remedy="Choose another name for one.")


def _hits(pattern: str, catalog: Catalog, chosen: ToolsetSettings) -> bool:
    """Whether a pattern matches any tool of the chosen servers."""
    of_servers: Iterable[ToolId] = (
        tool.id for tool in catalog.tools if not chosen.servers or tool.server in chosen.servers
    )
    return any(tool.fits(pattern) for tool in of_servers)


def _readings(key: str) -> Iterator[ToolId]:
    """Every tool that `server/name` can refer to: names of servers, and of some tools, can contain slashes."""
    parts = key.split("/")
    for place in range(1, len(parts)):
        yield ToolId("/".join(parts[:place]), "/".join(parts[place:]))


def _expanded(expand: Expander, value: Any) -> Any:
    """JSON with the variables in its strings expanded."""
    if isinstance(value, Mapping):
        return {key: _expanded(expand, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_expanded(expand, each) for each in value]
    return expand(value) if isinstance(value, str) else value


JOINED = ("allOf", "anyOf", "oneOf")
CONDITIONS = frozenset(
    {"if", "then", "else", "not", "dependentRequired", "dependentSchemas", "dependencies", "minProperties"}
)
"""Keywords that relate several arguments: with some of them hidden, only the server can check them."""


def without_arguments(schema: JsonObject, names: Collection[str]) -> JsonObject:
    """The schema without these arguments. It may allow more than the server does, never less.

    >>> schema = {"properties": {"owner": {}, "title": {}}, "required": ["owner", "title"]}
    >>> without_arguments(schema, {"owner"})
    {'properties': {'title': {}}, 'required': ['title']}
    """
    return _without(schema, names, schema, frozenset())


def _without(schema: JsonObject, names: Collection[str], root: JsonObject, seen: frozenset[str]) -> JsonObject:
    if isinstance(reference := schema.get("$ref"), str):
        others = {key: value for key, value in schema.items() if key != "$ref"}
        target = {} if reference in seen else _referred(reference, root)
        return _without({**target, **others}, names, root, seen | {reference})
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key not in CONDITIONS}
    if isinstance(properties := kept.get("properties"), Mapping):
        kept["properties"] = {name: each for name, each in properties.items() if name not in names}
    if isinstance(required := kept.get("required"), list):
        kept["required"] = [name for name in required if name not in names]
    for key in JOINED:
        if isinstance(branches := kept.get(key), list):
            kept[key] = [_without(each, names, root, seen) if isinstance(each, Mapping) else each for each in branches]
    if kept.get("oneOf") != schema.get("oneOf"):  # what distinguished the branches may be hidden
        kept["allOf"] = [*kept.get("allOf", []), {"anyOf": kept.pop("oneOf")}]
    return kept


def _referred(reference: str, root: JsonObject) -> JsonObject:
    """The target of a reference within the schema; if there is none, an empty schema, which allows everything."""
    found: Any = root if reference.startswith("#") else None
    for step in filter(None, reference.removeprefix("#").split("/")):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}
