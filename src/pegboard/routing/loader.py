"""Phase 2: full definitions of the active tools, through an LRU (Tool Attention §4.4, A.3)."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from pegboard.errors import CatalogError
from pegboard.model import JsonObject, ToolId
from pegboard.protocols import DefinitionSource

CAPACITY = 256


class SchemaLoader:
    """Caches the most recently used definitions; others come from the source: memory, disk or the live server."""

    def __init__(self, source: DefinitionSource, capacity: int = CAPACITY) -> None:
        self._source = source
        self._capacity = capacity
        self._definitions: OrderedDict[ToolId, JsonObject] = OrderedDict()

    async def load(self, tools: Sequence[ToolId]) -> tuple[JsonObject, ...]:
        """The definitions of these tools, in order."""
        return tuple([await self._get(tool) for tool in tools])

    async def _get(self, tool: ToolId) -> JsonObject:
        if tool not in self._definitions:
            self._definitions[tool] = await self._source.definition(tool)
        self._definitions.move_to_end(tool)
        definition = self._definitions[tool]
        while len(self._definitions) > self._capacity:
            self._definitions.popitem(last=False)
        return definition

    def __contains__(self, tool: object) -> bool:
        return tool in self._definitions


class DirectorySource:
    """Definitions in a folder: one `SERVER/NAME.json` a tool, names percent-encoded."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, tool: ToolId) -> Path:
        return self._folder / _file_name(tool.server) / f"{_file_name(tool.name)}.json"

    async def definition(self, tool: ToolId) -> JsonObject:
        path = self.path(tool)
        try:
            return dict(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise CatalogError(f"No definition of {str(tool)!r} in {str(path)!r}: {error}.") from error


def _file_name(name: str) -> str:
    """The name percent-encoded; so is a name of dots alone, which would name another folder."""
    return quote(name, safe="", errors="surrogatepass") if name.strip(".") else name.replace(".", "%2E")
