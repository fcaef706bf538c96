"""Which definitions stand before which of the user's messages (phase 2), from the history alone.

Before each message: what the router finds for it, what the policy always wants and what was called up to then, each
only where nothing before has shown it. So what was sent once is sent again with every later request, by any replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pegboard.gateways.llm.boards import Pick, Stock
from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.past import REACH, Ask, Stage
from pegboard.gateways.llm.replaying import picks_of, remember
from pegboard.gateways.llm.settling import Terms
from pegboard.model import Message, Turn
from pegboard.retrieval import QUERIES, QueryKind
from pegboard.seams import Filter

MOST = 512
STEP = 256
"""Of more messages than that the oldest are forgotten, so many at once: then, and only then, earlier bytes change."""
AT_ONCE = 16
"""Messages that are matched together. What they picked is remembered, should time not suffice for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """Places of the tools that are shown before the user's messages, by the number of the message."""

    before: Mapping[int, tuple[int, ...]]

    @property
    def places(self) -> frozenset[int]:
        """All that are shown by now."""
        return frozenset(chain.from_iterable(self.before.values()))


async def showing(
    request: Request,
    stock: Stock,
    kind: QueryKind,
    among: Filter | None,
    terms: Terms,
    known: Mapping[str, Pick],
    *,
    most: int | None = None,
) -> Showing:
    """``among`` are the tools that may be picked; ``known`` are picks that were made just now, by query. Of those that
    are relevant to a message the best are shown, so many at ``most``."""
    asks = list(_asks(request, kind))
    picks = dict(known)
    new = [ask for _, ask in asks if ask.query not in known]
    for start in range(0, len(new), AT_ONCE):
        picks |= await picks_of(stock, new[start : start + AT_ONCE], among)
    remember(stock, among, known)
    return Showing(before=dict(_shown(request, stock, asks, picks, terms, most)))


def _asks(request: Request, kind: QueryKind) -> Iterator[tuple[int, Ask]]:
    """Each message in which the user says something, by its number among those that have any text of the user's."""
    users: list[Message] = []
    called: frozenset[str] = frozenset()
    found: list[tuple[Turn, frozenset[str]] | None] = []
    for message in request.turn.messages:
        if message.role == "user" and message.text.strip():
            users = [*users, message][-REACH:]
            found.append((Turn(messages=tuple(users)), called))
        elif message.role == "user" and any(part.kind == "note" and part.text.strip() for part in message.parts):
            found.append(None)
        called |= {part.tool for part in message.parts if part.kind == "tool_call" and part.tool}
    for number, each in list(enumerate(found))[_forgotten(len(found)) :]:
        if each is not None:
            turn, before = each
            yield number, Ask(query=QUERIES[kind](turn), turn=turn, stage=Stage(called=before))


def _shown(
    request: Request,
    stock: Stock,
    asks: Sequence[tuple[int, Ask]],
    picks: Mapping[str, Pick],
    terms: Terms,
    most: int | None,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    shown: set[int] = set()
    for number, ask in asks:
        called = {place for place in stock.ids if request.tools[place].name in ask.stage.called}
        picked = {*picks[ask.query].relevant[:most], *terms.always} - terms.barred
        new = ((picked | called) & stock.ids.keys()) - shown
        if new:
            shown |= new
            yield number, tuple(sorted(new))


def _forgotten(messages: int) -> int:
    return -(-max(0, messages - MOST) // STEP) * STEP
