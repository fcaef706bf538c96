"""The turns that were answered, so that a report of an outcome can name one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from pegboard.model import ToolId

MOST_TURNS = 10_000

Identity = tuple[str, str] | None
"""Whose turn it is (`Holder.identity`); None where no token is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTurn:
    """What an outcome needs of a turn: whose habits it taught, the query, and the offered tools by name.

    ``own`` says that they are tools of the caller's own.
    """

    habits: str
    query: str
    tools: Mapping[str, ToolId]
    own: bool


class ToldTurns:
    """The last turns by their owner and id: nobody reports for another's turn."""

    def __init__(self) -> None:
        self._turns: OrderedDict[tuple[Identity, str], ToldTurn] = OrderedDict()

    def remember(self, owner: Identity, turn: str, told: ToldTurn) -> None:
        self._turns[owner, turn] = told
        while len(self._turns) > MOST_TURNS:
            self._turns.popitem(last=False)

    def of(self, owner: Identity, turn: str | None) -> ToldTurn | None:
        return None if turn is None else self._turns.get((owner, turn))
