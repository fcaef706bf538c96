"""What a model's search finds besides tools: skills and agents of the configuration, and what MCP servers offer."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pegboard.board_items import ITEM_KINDS, BoardItem, ItemKind
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.library.item_search import HowToRead, ItemSearch, shown_items
from pegboard.model import JsonObject

MOST_CHARACTERS = 20_000
"""Of the text of a skill that comes with the answer of a search."""
CONFIGURED: tuple[ItemKind, ...] = ("skill", "agent")
"""The kinds that a configuration has."""
LOGGER = logging.getLogger(__name__)


class ServerContents(Protocol):
    """Prompts, resources and skills of the servers of an MCP gateway in this process."""

    async def found(self, query: str, how: HowToRead, *, kind: ItemKind | None = None) -> dict[str, Any]:
        """By list, what matches, and how to read the first."""
        ...

    async def loaded(self, name: str) -> tuple[str, JsonObject] | None:
        """The kind and content of what has this name or address; None where nothing has."""
        ...


ServersOf = Callable[[], ServerContents | None]
"""Returns what the servers offer; None where a caller would need a token to see it."""


def no_servers() -> ServerContents | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedItems:
    """``own`` are those of the configuration, ``servers`` what servers offer."""

    own: ItemSearch
    servers: ServersOf = no_servers

    @property
    def any(self) -> bool:
        """Whether a search may find anything besides tools."""
        return self.own.any or self.servers() is not None

    def likely(self, request: LlmRequest) -> list[str]:
        """A line for each that matches what the conversation began with: they stay the same on all of its turns, so
        that what the description of the search is part of stays cached. Servers come and go, so that what they offer
        is not among them."""
        texts = (message.text for message in request.turn.messages if message.role == "user")
        first = next((text for text in texts if text), "")
        return [_line(each) for each in self.own.found(first, CONFIGURED)] if first else []

    async def found(self, tool: str, query: str, kind: str | None, timeout: float) -> dict[str, Any]:
        """What matches a query of the search ``tool``, or the item that the query is the address or name of. Servers
        may take ``timeout`` seconds; without them, what the configuration has."""

        def how(name: str) -> str:
            return f"Call {tool} with {json.dumps({'query': name})}."

        if (skill := self.own.skill_at(query)) is not None:
            return {"skills": [{"uri": query, "name": skill.name, "text": skill.text}]}
        own = self.own.found(query, [each for each in CONFIGURED if kind in (None, each)])
        shown = shown_items(own, how)
        if "skills" in shown:
            shown["skills"][0]["text"] = own[0].text[:MOST_CHARACTERS]
            shown.pop("read_skill")
            others = shown["skills"][1:]
            shown |= {"read_skill": how(others[0]["uri"])} if others else {}
        servers = self.servers()
        if servers is None or kind == "tool":
            return shown
        try:
            async with asyncio.timeout(timeout):
                there = await _of_servers(servers, query, how, kind)
        except Exception:
            LOGGER.exception("A search for prompts and resources failed")
            return shown
        skills = [*shown.get("skills", ()), *there.get("skills", ())]
        return there | shown | ({"skills": skills} if skills else {})


async def _of_servers(servers: ServerContents, query: str, how: HowToRead, kind: str | None) -> dict[str, Any]:
    loaded = None if " " in query else await servers.loaded(query)
    if loaded is not None:
        return {loaded[0]: [loaded[1]]}
    return await servers.found(query, how, kind=next((each for each in ITEM_KINDS if each == kind), None))


def _line(item: BoardItem) -> str:
    return f"- {item.kind} {item.name}: {' '.join(item.description.split())}"
