"""The tools that requests bring along: each set has its own board, however many requests run at once.

Requests never see each other's tools: not their existence, names, descriptions or ranking (P17). A conversation's state
names the set that its model was shown, so that its calls find exactly these tools.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.tools import BaseTool

from pegboard.catalog import fingerprint
from pegboard.gateways.langchain.tools import board_tool
from pegboard.library import Board
from pegboard.library.given_tools import AGENT, GivenTools, given_tools, joined
from pegboard.model import Fingerprint, Tool, ToolId

MOST_BOARDS = 64
"""Boards kept for different definitions: the most recently used."""
MOST_SETS = 512
"""Sets of tool objects: an agent may create tools for each request, and a set keeps them, and what they hold, alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """The agent's own tools in one request: by name as LangChain objects, and as a board's tools.

    ``key`` identifies the set in this process only.
    """

    key: str
    tools: Mapping[str, BaseTool]
    definitions: tuple[Tool, ...]
    fingerprints: tuple[Fingerprint, ...]

    def own(self, tool: ToolId | None) -> BaseTool | None:
        """The LangChain object of one of the agent's own tools."""
        return None if tool is None or tool.server != AGENT else self.tools.get(tool.name)


NONE = Toolset(key="", tools={}, definitions=(), fingerprints=())


class Toolsets:
    """Sets are distinguished by their tool objects, as two with equal definitions may act for two users; boards by
    definitions.

    ``board`` serves requests without tools; boards for other requests also have its ``own`` tools. Thread-safe.
    """

    def __init__(self, board: Board, own: GivenTools) -> None:
        self._board = board
        self._own = own
        self._lock = threading.Lock()
        self._sets: OrderedDict[tuple[int, ...], Toolset] = OrderedDict()
        self._keys: dict[str, Toolset] = {}
        self._boards: OrderedDict[tuple[Fingerprint, ...], Board] = OrderedDict()

    def of(self, tools: Sequence[BaseTool]) -> Toolset:
        """The set of these tools; if several share a name the last one counts, as in LangChain."""
        named = {tool.name: tool for tool in tools}
        if not named:
            return NONE
        objects = tuple(map(id, named.values()))  # the set keeps the objects alive, so ids are unique
        with self._lock:
            found = self._sets.get(objects)
            if found is None:
                found = self._sets[objects] = _made(named)
                self._keys[found.key] = found
            self._sets.move_to_end(objects)
            while len(self._sets) > MOST_SETS:
                del self._keys[self._sets.popitem(last=False)[1].key]
        return found

    def known(self, key: str) -> Toolset | None:
        """The set with this key; None if it belongs to another process or was evicted."""
        return self._keys.get(key)

    def board(self, toolset: Toolset) -> Board:
        """The board that selects among the set's tools and all others; equal definitions share a board."""
        if not toolset.definitions:
            return self._board
        key = toolset.fingerprints
        with self._lock:
            found = self._boards.get(key)
            if found is None:
                found = self._boards[key] = self._board.with_tools(joined(given_tools(toolset.definitions), self._own))
            self._boards.move_to_end(key)
            while len(self._boards) > MOST_BOARDS:
                self._boards.popitem(last=False)
        return found


def _made(named: Mapping[str, BaseTool]) -> Toolset:
    definitions = tuple(map(board_tool, named.values()))
    fingerprints = tuple(map(fingerprint, definitions))
    return Toolset(key=uuid.uuid4().hex, tools=named, definitions=definitions, fingerprints=fingerprints)
