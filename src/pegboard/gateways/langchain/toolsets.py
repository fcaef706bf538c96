"""The tools that requests bring along: each set with a board of its own, however many requests there are at once.

Nothing of one request is seen by another: neither which tools there are, nor what they are called, described or ranked
by (P17). A conversation's state names the set that its model was shown, so that its calls find just these tools.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.tools import BaseTool

from pegboard.catalog import fingerprint
from pegboard.gateways.langchain.tools import AGENT, board_tool
from pegboard.library import Board
from pegboard.model import Fingerprint, Tool, ToolId

MOST_BOARDS = 64
"""Boards of different definitions that are kept: those used last."""
MOST_SETS = 4096
"""Sets of tool objects: tools may be made anew for each request, and a set is little more than their references."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolset:
    """The agent's own tools in one request: by their names as LangChain has them, and as a board has them.

    ``key`` finds the set again in this process, and in no other.
    """

    key: str
    tools: Mapping[str, BaseTool]
    definitions: tuple[Tool, ...]
    fingerprints: tuple[Fingerprint, ...]

    def own(self, tool: ToolId | None) -> BaseTool | None:
        """LangChain's of one of the agent's own tools."""
        return None if tool is None or tool.server != AGENT else self.tools.get(tool.name)


NONE = Toolset(key="", tools={}, definitions=(), fingerprints=())


class Toolsets:
    """Sets are told apart by their tool objects, as two of one definition may act for two users; boards by definitions.

    ``board`` is that of requests without tools; those of others have its ``own`` too. Any number of threads may ask.
    """

    def __init__(self, board: Board, own: Sequence[object]) -> None:
        self._board = board
        self._own = tuple(own)
        self._lock = threading.Lock()
        self._sets: OrderedDict[tuple[int, ...], Toolset] = OrderedDict()
        self._keys: dict[str, Toolset] = {}
        self._boards: OrderedDict[tuple[Fingerprint, ...], Board] = OrderedDict()

    def of(self, tools: Sequence[BaseTool]) -> Toolset:
        """The set of these tools; of several of one name the last counts, as it does for LangChain."""
        named = {tool.name: tool for tool in tools}
        if not named:
            return NONE
        objects = tuple(map(id, named.values()))  # the set keeps them: no other object has such an id meanwhile
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
        """The set that had this key; None for one of another process, or of long ago."""
        return self._keys.get(key)

    def board(self, toolset: Toolset) -> Board:
        """The board that chooses among the set's tools and all others; the same one for the same definitions."""
        if not toolset.definitions:
            return self._board
        key = toolset.fingerprints
        with self._lock:
            found = self._boards.get(key)
            if found is None:
                found = self._boards[key] = self._board.with_tools([*toolset.definitions, *self._own])
            self._boards.move_to_end(key)
            while len(self._boards) > MOST_BOARDS:
                self._boards.popitem(last=False)
        return found


def _made(named: Mapping[str, BaseTool]) -> Toolset:
    definitions = tuple(map(board_tool, named.values()))
    fingerprints = tuple(map(fingerprint, definitions))
    return Toolset(key=uuid.uuid4().hex, tools=named, definitions=definitions, fingerprints=fingerprints)
