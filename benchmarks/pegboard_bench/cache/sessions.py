"""Conversations of one cell of the grid: who says what when."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pegboard_bench.cache.boards import Intent, ToolBoard

SYSTEM = 800
"""Tokens of the system prompt, the same for all."""
MANY = 10
VISITS = 5
"""Conversations within a lifetime of which not all are simulated, and how many of their first turns are."""
ASKED = 60
"""Tokens of a user's message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """``others``: conversations that begin within a lifetime; ``news``: the share of turns with a new intent;
    ``think``: seconds between a conversation's turns; ``growth``: tokens that a turn leaves in the history.
    """

    testbed: str
    turns: int
    others: int
    news: float
    ttl: int
    think: int
    growth: int

    @property
    def name(self) -> str:
        return (
            f"{self.testbed}-turns{self.turns}-others{self.others}-news{self.news:g}-ttl{self.ttl}"
            f"-think{self.think}-growth{self.growth}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """When it begins, in seconds, and the intent of each turn."""

    number: int
    begins: float
    intents: tuple[Intent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The turn ``number``, from 0, of a conversation."""

    at: float
    conversation: Conversation
    number: int


def conversations(cell: Cell, testbed: ToolBoard, count: int, seed: int) -> list[Conversation]:
    """They begin at random, ``others`` in a lifetime on average; each turn's intent is the last one's or any other."""
    choose = random.Random(f"{seed} {cell.name}")  # noqa: S311
    begins, found = 0.0, []
    for number in range(count):
        begins += choose.expovariate(cell.others / cell.ttl)
        intents = [choose.choice(testbed.intents)]
        while len(intents) < cell.turns:
            intents.append(choose.choice(testbed.intents) if choose.random() < cell.news else intents[-1])
        found.append(Conversation(number=number, begins=begins, intents=tuple(intents)))
    return found


def visitors(cell: Cell, testbed: ToolBoard, until: float, first: int, seed: int) -> list[Conversation]:
    """First turns of the many other conversations, numbered from ``first``: they keep what all share in the cache.

    Where few conversations come within a lifetime they are all simulated, and there are none.
    """
    if cell.others < MANY:
        return []
    choose = random.Random(f"visitors {seed} {cell.name}")  # noqa: S311
    found: list[Conversation] = []
    at = 0.0
    while (at := at + choose.expovariate(VISITS / cell.ttl)) < until:
        intents = (choose.choice(testbed.intents),)
        found.append(Conversation(number=first + len(found), begins=at, intents=intents))
    return found


def turns(cell: Cell, found: Sequence[Conversation]) -> list[Turn]:
    """All turns in the order in which they come."""
    each = (
        Turn(at=conversation.begins + number * cell.think, conversation=conversation, number=number)
        for conversation in found
        for number in range(len(conversation.intents))
    )
    return sorted(each, key=lambda turn: (turn.at, turn.conversation.number))
