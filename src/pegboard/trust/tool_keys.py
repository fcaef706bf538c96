"""By which key the pin of a tool goes, so that no prompt, resource or skill of its server has the same.

Theirs are `KIND/NAME` (`prompts/review`). A tool's key is its name, unless that looks like one of theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from pegboard.model import Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS, Pins

ITEM_KINDS = ("prompts", "resources", "resourceTemplates", "skills")
AMBIGUOUS = re.compile(rf"(?:tools/)*(?:{'|'.join(ITEM_KINDS)})/")
T = TypeVar("T")


def tool_key(tool: ToolId) -> ToolId:
    """The key of a tool's pin; different for different tools.

    >>> tool_key(ToolId("notes", "review")), tool_key(ToolId("notes", "prompts/review"))
    (ToolId(server='notes', name='review'), ToolId(server='notes', name='tools/prompts/review'))
    """
    return ToolId(tool.server, f"tools/{tool.name}") if AMBIGUOUS.match(tool.name) else tool


class KeyedPins:
    """The pins of tools, by the tools' ids. What was approved when all went by the names is still approved."""

    def __init__(self, store: Pins) -> None:
        self._store = store

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        """All pins, by their keys, or those of these tools."""
        if tools is None or not (keys := _keys(tools)):
            return await self._store.get(tools)
        wanted = [keys.get(tool, tool) for tool in tools]
        found = await self._store.get(wanted)
        missing = {tool: key for tool, key in keys.items() if key not in found}
        if missing and await self._carry_over(missing):
            found = await self._store.get(wanted)
        return _by_tool(found, keys)

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        keys = _keys(seen)
        unsure = [keys.get(tool, tool) for tool in doubted]
        found = await self._store.put(_by_key(seen, keys), texts=_by_key(texts, keys), doubted=unsure)
        return _by_tool(found, keys)

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        await self._store.approve(_by_key(tools, _keys(tools)))

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        keys = _keys(tools)
        return _by_tool(await self._store.wordings([keys.get(tool, tool) for tool in tools]), keys)

    async def version(self) -> int:
        return await self._store.version()

    async def _carry_over(self, keys: Mapping[ToolId, ToolId]) -> bool:
        """Approve under these keys what is approved under the tools' names, if that is a tool and no prompt."""
        known, texts = await self._store.get(list(keys)), await self._store.wordings(list(keys))
        approved = {
            keys[tool]: pin.approved
            for tool, pin in known.items()
            if not pin.new and _is_tool(texts.get(tool, Wording()).approved)
        }
        if approved:
            await self._store.approve(approved)
        return bool(approved)


def _is_tool(text: str | None) -> bool:
    """Whether an approved definition is a tool's: no other has a schema."""
    return text is not None and "inputSchema" in json.loads(text)


def _keys(tools: Collection[ToolId]) -> dict[ToolId, ToolId]:
    """The keys that are not the tools' own ids."""
    return {tool: tool_key(tool) for tool in tools if AMBIGUOUS.match(tool.name)}


def _by_key(values: Mapping[ToolId, T], keys: Mapping[ToolId, ToolId]) -> Mapping[ToolId, T]:
    return {keys.get(tool, tool): value for tool, value in values.items()} if keys else values


def _by_tool(values: Mapping[ToolId, T], keys: Mapping[ToolId, ToolId]) -> Mapping[ToolId, T]:
    return _by_key(values, {key: tool for tool, key in keys.items()})
