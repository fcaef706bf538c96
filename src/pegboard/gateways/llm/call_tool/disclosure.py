"""Which definitions are shown before which user message (phase 2), computed from the history alone.

Before each message: the tools that the router finds for it, those that the policy always keeps, and those called so
far, each only if no earlier message shows it. So every later request repeats the same bytes, from any replica.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from pegboard.gateways.llm.conversation.history import REACH, Ask, Stage
from pegboard.gateways.llm.conversation.stickiness import picks_of, remember, telling
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.selection.board_cache import Pick, ToolBoard
from pegboard.gateways.llm.selection.cache_aware_selection import SelectionTerms
from pegboard.model import Message, Turn
from pegboard.protocols import Filter
from pegboard.retrieval import QUERIES, QueryKind

MOST = 512
STEP = 256
"""Beyond that many messages the oldest are forgotten, this many at once: only then do earlier bytes change."""
AT_ONCE = 16
"""Messages that are matched together. Their picks are remembered in case the time does not suffice for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """Places of the tools shown before the user's messages, by message number."""

    before: Mapping[int, tuple[int, ...]]

    @property
    def places(self) -> frozenset[int]:
        """All places shown so far."""
        return frozenset(chain.from_iterable(self.before.values()))


async def disclosure(
    request: LlmRequest,
    board: ToolBoard,
    kind: QueryKind,
    among: Filter | None,
    terms: SelectionTerms,
    known: Mapping[str, Pick],
    *,
    most: int | None = None,
) -> Disclosure:
    """What to show. ``among`` are the tools that may be picked; ``known`` are picks made just now, by query.

    With ``most``, at most so many of the tools relevant to a message are shown, the best first; and none of them, if it
    seems to be for none.
    """
    asks = list(_asks(request, kind))
    picks = {**board.shown.known((ask.query for _, ask in asks), among), **known}
    new = [ask for _, ask in asks if ask.query not in picks]
    for start in range(0, len(new), AT_ONCE):
        found = await picks_of(board, new[start : start + AT_ONCE], among)
        board.shown.keep(telling(board, found), among)
        picks |= found
    remember(board, among, known)
    board.shown.keep(telling(board, known), among)
    return Disclosure(before=dict(_shown(request, board, asks, picks, terms, most)))


def _asks(request: LlmRequest, kind: QueryKind) -> Iterator[tuple[int, Ask]]:
    """Each message in which the user says something, by its number among the messages with any text from the user."""
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
    request: LlmRequest,
    board: ToolBoard,
    asks: Sequence[tuple[int, Ask]],
    picks: Mapping[str, Pick],
    terms: SelectionTerms,
    most: int | None,
) -> Iterator[tuple[int, tuple[int, ...]]]:
    shown: set[int] = set()
    for number, ask in asks:
        called = {place for place in board.ids if request.tools[place].name in ask.stage.called}
        pick = picks[ask.query]
        picked = {*(pick.relevant if most is None else pick.shown(most)), *terms.always} - terms.barred
        new = ((picked | called) & board.ids.keys()) - shown
        if new:
            shown |= new
            yield number, tuple(sorted(new))


def _forgotten(messages: int) -> int:
    return -(-max(0, messages - MOST) // STEP) * STEP
