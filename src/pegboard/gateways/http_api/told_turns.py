"""The turns that were answered, so that a report of an outcome can name one."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from pegboard.model import ToolId

MOST_TURNS = 10_000
MOST_NAMES = 1_000_000
"""Of the tools of all turns, those that turns share counted once: some 100 MB."""

Identity = tuple[str, str] | None
"""Whose turn it is (`Holder.identity`); None where no token is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTurn:
    """What an outcome needs of a turn: whose habits it taught, the query, and the name of each offered tool.

    Turns over the same tools share one ``names``. ``own`` says that they are tools of the caller's own.
    """

    habits: str
    query: str
    names: Mapping[ToolId, str]
    own: bool

    def tool(self, name: str) -> ToolId | None:
        """The offered tool of this name."""
        return next((tool for tool, offered in self.names.items() if offered == name), None)


class ToldTurns:
    """The last turns by their owner and id: nobody reports for another's turn.

    Where there are too many, the owner with most of them, tools of its own counted, loses its oldest.
    """

    def __init__(self, *, most_turns: int = MOST_TURNS, most_names: int = MOST_NAMES) -> None:
        self._most_turns = most_turns
        self._most_names = most_names
        self._turns: dict[Identity, OrderedDict[str, ToldTurn]] = {}
        self._weights: Counter[Identity] = Counter()
        self._sharing: Counter[int] = Counter()
        self._count = 0
        self._names = 0

    def remember(self, owner: Identity, turn: str, told: ToldTurn) -> None:
        """Keep a turn, and forget others for it; one is kept however many names it has."""
        if not self._sharing[id(told.names)]:
            self._names += len(told.names)
        self._sharing[id(told.names)] += 1
        self._turns.setdefault(owner, OrderedDict())[turn] = told
        self._weights[owner] += _weight(told)
        self._count += 1
        while self._count > 1 and (self._count > self._most_turns or self._names > self._most_names):
            self._forget_one()

    def of(self, owner: Identity, turn: str | None) -> ToldTurn | None:
        turns = self._turns.get(owner)
        return None if turns is None or turn is None else turns.get(turn)

    def _forget_one(self) -> None:
        owner = max(self._weights, key=self._weights.__getitem__)
        _, told = self._turns[owner].popitem(last=False)
        self._weights[owner] -= _weight(told)
        if not self._turns[owner]:
            del self._turns[owner], self._weights[owner]
        self._count -= 1
        self._sharing[id(told.names)] -= 1
        if not self._sharing[id(told.names)]:
            del self._sharing[id(told.names)]
            self._names -= len(told.names)


def _weight(told: ToldTurn) -> int:
    return 1 + (len(told.names) if told.own else 0)
