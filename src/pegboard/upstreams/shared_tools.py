"""Definitions of tools that several connections to one server list alike, kept once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from weakref import WeakValueDictionary

from pegboard.model import Tool, ToolId


class SharedTools:
    """Tools by their definitions, each kept as long as a connection lists it.

    Tools are looked up by what a connection has listed already, so that no connection gets another tool than its own.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[ToolId, bytes], Tool] = WeakValueDictionary()

    def of(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """The same tools: the objects of others where they are equal to the byte, the order of keys included."""
        return tuple(self._one(tool) for tool in tools)

    def _one(self, tool: Tool) -> Tool:
        text = json.dumps(tool.definition, ensure_ascii=False, separators=(",", ":"), default=repr)
        key = tool.id, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        known = self._known.setdefault(key, tool)
        return known if known == tool else tool
