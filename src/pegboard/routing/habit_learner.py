"""Learns from calls which tools a key's requests lead to, and raises those tools in its later requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pegboard.habit_trial import FIRST, observation
from pegboard.habits import boosted, step, within_encoder
from pegboard.model import Floats, Mask, Scores, Tool, ToolId
from pegboard.routing.habit_book import HabitBook, KeyHabits

PART = "use"
"""The name of the boost among the parts of a score, in log-odds."""
OFFERED = 10
"""The first tools of the taught order count as offered."""
REMEMBERED = 64
"""The first tools of either order whose places are remembered until the calls are known."""
MOST_REQUESTS = 2_000
"""Requests that are remembered, with their vector and two orders, until their calls are known."""
MOST_SESSIONS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedRequest:
    """A request whose calls are not known yet: its key with the encoder, its vector, the first tools without and with
    what was taught, and their probabilities as taught. ``called`` are the tools called so far."""

    key: str
    vector: Floats
    untaught: tuple[ToolId, ...]
    taught: tuple[ToolId, ...]
    probabilities: dict[ToolId, float]
    called: set[ToolId] = field(default_factory=set)


class HabitLearner:
    """Adjusts scores by habits, and learns from the calls that follow."""

    def __init__(self, book: HabitBook) -> None:
        self.book = book
        self._requests: OrderedDict[tuple[str, str], RankedRequest] = OrderedDict()
        self._sessions: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def adjusted(
        self, habits: str, query: str, scores: Scores, tools: Sequence[Tool], among: Mask, *, encoder: str
    ) -> Scores:
        """The scores as taught by the use of ``habits``, if its trial says that this is better; else unchanged.

        Only calibrated scores with a query vector are adjusted. ``tools`` are those of the scores; the tools of
        ``among``, shape (n,), may be selected, and only these are learnt about.
        """
        if not habits or scores.scale != "probability" or scores.query_vector is None:
            return scores
        key = within_encoder(habits, encoder)
        known = self.book.of(key)
        boosts = _boosts(known, tools, scores.query_vector)
        taught = boosted(scores.values, boosts)
        self._remember((habits, query), key, scores, taught, tools, among)
        if not known.is_used:
            return scores
        return replace(scores, values=taught, parts={**scores.parts, PART: boosts})

    def called(self, habits: str, query: str, tools: Collection[ToolId], *, ended: bool = False) -> None:
        """Learn that a request led to calls of these tools. If it has ``ended``, the tools that were offered and not
        called count too, provided that anything was called. Unknown requests teach nothing."""
        request = self._requests.get((habits, query))
        if request is None:
            return
        known = self.book.of(request.key)
        for tool in [tool for tool in dict.fromkeys(tools) if tool not in request.called]:
            request.called.add(tool)
            known.add(tool, step(request.vector, request.probabilities.get(tool, 0.0), called=True))
            found = {"untaught": tool in request.untaught[:FIRST], "taught": tool in request.taught[:FIRST]}
            known.observe(observation(**found))
        if ended and request.called:
            for tool in request.taught[:OFFERED]:
                if tool not in request.called:
                    known.add(tool, step(request.vector, request.probabilities[tool], called=False))
            request.called.clear()

    def searched(self, session: str, habits: str, query: str) -> None:
        """Remember what a session searched for last; that ends its earlier search."""
        if not habits:
            return
        before = self._sessions.get(session)
        if before is not None and before != (habits, query):
            self.called(*before, (), ended=True)
        self._sessions[session] = habits, query
        self._sessions.move_to_end(session)
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)

    def called_after_search(self, session: str, tool: ToolId) -> None:
        """Learn that a session called a tool after its last search, if that ranked the tool."""
        found = self._sessions.get(session)
        request = self._requests.get(found) if found is not None else None
        if found is not None and request is not None and tool in request.probabilities:
            self.called(*found, [tool])

    def _remember(
        self, request: tuple[str, str], key: str, scores: Scores, taught: Floats, tools: Sequence[Tool], among: Mask
    ) -> None:
        places = np.flatnonzero(among)
        orders = [places[np.argsort(-values[places], kind="stable")][:REMEMBERED] for values in (scores.values, taught)]
        before = self._requests.get(request)
        assert scores.query_vector is not None  # noqa: S101 - the caller has checked it
        self._requests[request] = RankedRequest(
            key=key,
            vector=scores.query_vector,
            untaught=tuple(tools[place].id for place in orders[0]),
            taught=tuple(tools[place].id for place in orders[1]),
            probabilities={tools[place].id: float(taught[place]) for order in orders for place in order},
            called=set() if before is None else before.called,
        )
        self._requests.move_to_end(request)
        while len(self._requests) > MOST_REQUESTS:
            self._requests.popitem(last=False)


def _boosts(known: KeyHabits, tools: Sequence[Tool], query: Floats) -> Floats:
    """w·q of every tool, shape (n,); 0 for tools without a vector."""
    vectors = known.vectors()
    out = np.zeros(len(tools), np.float32)
    places = [place for place, tool in enumerate(tools) if tool.id in vectors] if vectors else []
    if places:
        rows = [vectors[tools[place].id] for place in places]
        if all(row.shape == query.shape for row in rows):
            out[places] = np.stack(rows) @ query
    return out
