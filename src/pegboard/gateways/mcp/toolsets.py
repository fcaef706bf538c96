"""Toolsets: named selections of the board, with tools hidden, renamed, described anew and called with preset arguments.

A toolset is a view: tools keep their identity, so rules, statistics and routing know them as before.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pegboard.catalog import Catalog, summarize
from pegboard.errors import ConfigError
from pegboard.gateways.mcp.meta_tools import META_TOOLS
from pegboard.gateways.mcp.presets import without_arguments
from pegboard.model import JsonObject, Tool, ToolId
from pegboard.server_spec import Expander
from pegboard.settings import ToolsetSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """One selection. ``presets`` are by ``server/name``, with their variables put in; they are secret."""

    name: str
    settings: ToolsetSettings
    presets: Mapping[str, JsonObject] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, name: str, settings: ToolsetSettings, environment: Mapping[str, str] | None = None) -> Toolset:
        """The toolset of a configuration.

        Raises ConfigError, naming toolset and field, for a name that is ours, one that is given twice, and a variable
        that is not set.
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
        """Wished names by tool, as WireNames.build takes them."""
        return {tool: new for key, new in self.settings.rename.items() for tool in _readings(key)}

    def includes(self, tool: ToolId) -> bool:
        chosen = self.settings
        return (
            (not chosen.servers or tool.server in chosen.servers)
            and (not chosen.tools or any(map(tool.fits, chosen.tools)))
            and not any(map(tool.fits, chosen.hidden))
        )

    def apply(self, catalog: Catalog) -> Catalog:
        """The catalog as this toolset shows it: in the same order, without the other tools and their servers."""
        tools: dict[str, list[Tool]] = {}
        for tool in catalog.tools:
            if self.includes(tool.id):
                tools.setdefault(tool.server, []).append(self._shown(tool, catalog))
        groups = [(server, tools[name]) for name, server in catalog.servers.items() if name in tools]
        return Catalog.build(groups, counter=catalog.counter)

    def arguments(self, tool: ToolId, given: JsonObject) -> JsonObject:
        """What the server is sent: the preset values hold, whatever the caller says.

        Check the caller's arguments before, so that no error shows a preset value.
        """
        return {**given, **self.presets.get(str(tool), {})}

    def unmatched(self, catalog: Catalog) -> tuple[str, ...]:
        """What the configuration names and the catalog does not have, as `field: what`.

        A server that has not started yet has no tools: ask when all have.
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
        raise ConfigError(f"{where} cannot be called {new!r}, which is Pegboard's own tool.", remedy="Choose another.")
    if twins := [other for other, name in rename.items() if name == new and other != tool]:
        raise ConfigError(f"{where} and {twins[0]!r} are both called {new!r}.", remedy="Choose another name for one.")


def _hits(pattern: str, catalog: Catalog, chosen: ToolsetSettings) -> bool:
    """Whether a pattern means any tool of the chosen servers."""
    of_servers: Iterable[ToolId] = (
        tool.id for tool in catalog.tools if not chosen.servers or tool.server in chosen.servers
    )
    return any(tool.fits(pattern) for tool in of_servers)


def _readings(key: str) -> Iterator[ToolId]:
    """Every tool that `server/name` can mean: servers' names, and some tools', hold slashes themselves."""
    parts = key.split("/")
    for place in range(1, len(parts)):
        yield ToolId("/".join(parts[:place]), "/".join(parts[place:]))


def _expanded(expand: Expander, value: Any) -> Any:
    """JSON with the variables in its texts put in."""
    if isinstance(value, Mapping):
        return {key: _expanded(expand, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_expanded(expand, each) for each in value]
    return expand(value) if isinstance(value, str) else value
