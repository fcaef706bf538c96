"""A board for each set of tools that requests bring along, however many requests run at once.

Requests never see each other's tools: not their existence, names, descriptions or ranking (P17).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from pegboard.library import Board
from pegboard.library.framework_tools import FrameworkTool
from pegboard.model import JsonObject

MOST_BOARDS = 64
"""Boards kept for different sets: the most recently used."""

Key = tuple[tuple[str, str], ...]
"""The names and descriptions of a set, in order."""


class BoardsBySet:
    """Equal definitions share a board; boards share the encoder, the store and the servers of the first.

    Frameworks make tool objects anew for each turn, so sets are told by content: the key is cheap, and schemas that are
    the same objects are equal at once. Thread-safe.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self._lock = threading.Lock()
        self._boards: OrderedDict[Key, tuple[list[JsonObject], Board]] = OrderedDict()

    def of(self, tools: Sequence[FrameworkTool]) -> Board:
        """The board that selects among these tools and those of the first board's servers."""
        key = tuple((tool.name, tool.description) for tool in tools)
        schemas = [tool.schema for tool in tools]
        with self._lock:
            found = self._boards.get(key)
            if found is None or found[0] != schemas:
                found = schemas, self.board.with_tools([tool.definition for tool in tools])
                self._boards[key] = found
            self._boards.move_to_end(key)
            while len(self._boards) > MOST_BOARDS:
                self._boards.popitem(last=False)
        return found[1]
