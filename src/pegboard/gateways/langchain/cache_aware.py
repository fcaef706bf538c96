"""What the provider's prompt cache makes of a selection: tools that change are a prompt that is written again.

The rule, the prices and what similar conversations teach are the LLM gateway's (docs/prompt-cache.md). What a
conversation needs to remember of it is in its state, as plain JSON.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from langchain.agents.middleware import ModelRequest

from pegboard.catalog import Catalog
from pegboard.clock import SYSTEM_CLOCK
from pegboard.gateways.langchain.messages import CACHE, active_in
from pegboard.gateways.llm.conversation.history import ConversationHistory
from pegboard.gateways.llm.conversation.stickiness import LEAST_SEEN
from pegboard.gateways.llm.conversation.turn_statistics import MOST_KEYS, TurnStatistics, turned
from pegboard.gateways.llm.selection.cache_aware_selection import RelevantTools
from pegboard.model import Decision, ToolId, Turn
from pegboard.prompt_cache import CachePrices, Moment, Traffic, Way, cheapest_way, known_prices, prices_of, verdict
from pegboard.protocols import Clock
from pegboard.routing.decisions import with_active

PROVIDERS: Mapping[str, str] = {
    "openai": "openai",
    "azure": "openai",
    "anthropic": "anthropic",
    "google_genai": "gemini",
    "google_vertexai": "gemini",
}
"""What LangChain calls the providers whose prices are known."""
UNCACHED = CachePrices()
WAYS: tuple[Way, ...] = ("whole", "tools")
LIKELY = 16
"""The next best tools among which more than the relevant ones may be sent."""
MARK = "cache_control"
Places = frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CachingModel:
    """What a request's model is called, and the prices of its cache."""

    name: str
    prices: CachePrices


def model_of(request: object) -> CachingModel | None:
    """The model of a request whose provider has a prompt cache of known prices, and uses it for this request."""
    if not isinstance(request, ModelRequest):
        return None
    said: Mapping[str, Any] = getattr(request.model, "_get_ls_params", dict)()  # what LangChain's own tracing goes by
    name, provider = str(said.get("ls_model_name") or ""), PROVIDERS.get(str(said.get("ls_provider")))
    prices = UNCACHED if provider is None or not name else prices_of(known_prices(), provider, name)
    if prices == UNCACHED or not (prices.automatic or MARK in request.model_settings):
        return None
    return CachingModel(name=name, prices=prices)


class CacheAwareTools:
    """Which tools a request of a conversation has, so that the conversation is billed least. Serves any number of
    conversations at once, in any threads; what they teach is kept in memory."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = Lock()
        self._statistics = TurnStatistics(clock)
        self._whole: OrderedDict[str, float] = OrderedDict()

    def kept(
        self,
        state: Mapping[str, Any],
        model: CachingModel,
        turn: Turn,
        decision: Decision,
        catalog: Catalog,
        must: Sequence[ToolId],
        beside: int,
    ) -> tuple[Decision, dict[str, Any]]:
        """The decision with the tools to send, of which ``must`` stay in any case, and what to remember. A request that
        leaves tools out has ``beside`` tokens more: summaries and a search.

        Tools are selected for the first conversations of a key; later ones may begin, and go on, with all of them.
        Within a conversation tools stay as long as that costs less.
        """
        ids = [tool.id for tool in catalog.tools if tool.id in frozenset(decision.reachable)]
        past = ConversationHistory(turn, "conversation")
        moment = self._moment(state, turn, past, decision, catalog, ids, must)
        before = _remembered(state, ids)
        with self._lock:
            key = self._statistics.key("", model.name, past.system, catalog.fingerprint.encode())
            moment = replace(moment, whole_idle=self._since(key), news=self._news(before, past), search=beside)
            way = self._way(state, key, moment, model.prices)
            places = self._places(way, moment, past, model.prices)
            now = before.after(moment.relevant, _places(ids, past.now.called), moment.held)
            self._learn(key, moment, before, now, model.prices, beside, first=not past.is_answered)
            if len(places) == len(ids):
                self._note_whole(key)
        said = {"way": way, "changed": now.changed, **{name: _names(ids, getattr(now, name)) for name in FIELDS}}
        return with_active(decision, catalog, [ids[place] for place in sorted(places)]), {CACHE: said}

    def _moment(
        self,
        state: Mapping[str, Any],
        turn: Turn,
        past: ConversationHistory,
        decision: Decision,
        catalog: Catalog,
        ids: Sequence[ToolId],
        must: Sequence[ToolId],
    ) -> Moment:
        """The moment of a request; places are those of ``ids``."""
        place = {tool: at for at, tool in enumerate(ids)}
        ranked = [each.tool for each in decision.candidates if each.tool in place]
        chosen = frozenset(decision.active) - frozenset(must)
        relevant = [tool for tool in ranked if tool in chosen]
        relevant += [tool for tool in decision.active if tool in chosen and tool not in relevant]
        held = frozenset(place[tool] for tool in active_in(state).values() if tool in place)
        likely = dict.fromkeys([*sorted(held), *(place[tool] for tool in ranked[: LIKELY + len(relevant)])])
        stage = past.now
        return Moment(
            tokens=[catalog.token_counts[catalog.position[tool]] for tool in ids],
            must=frozenset(place[tool] for tool in must),
            relevant=tuple(place[tool] for tool in relevant),
            likely=tuple(each for each in likely if ids[each] not in decision.active),
            held=held if past.is_answered else None,
            behind=stage.behind,
            ahead=stage.ahead,
            idle=None,
            whole_idle=None,
            turns=max(Traffic().turns, Traffic().remaining(stage.answers)),
            system=stage.system,
        )

    def _news(self, before: RelevantTools, past: ConversationHistory) -> float:
        return Traffic().revised(before.changed, past.now.answers).news

    def _since(self, key: str) -> float | None:
        then = self._whole.get(key)
        return None if then is None else self._clock.monotonic() - then

    def _note_whole(self, key: str) -> None:
        self._whole[key] = self._clock.monotonic()
        self._whole.move_to_end(key)
        while len(self._whole) > MOST_KEYS:
            self._whole.popitem(last=False)

    def _way(self, state: Mapping[str, Any], key: str, moment: Moment, prices: CachePrices) -> Way:
        """A conversation keeps its way; a new one takes the cheapest, by those that were seen before."""
        known = (state.get(CACHE) or {}).get("way")
        if known in WAYS:
            return "whole" if known == "whole" else "tools"
        seen = self._statistics.seen(key)
        if moment.held is not None or seen.conversations < LEAST_SEEN:
            return "tools"
        return cheapest_way(seen.traffic(moment.system, moment.total), prices, moment.total, 0.0, WAYS)

    def _places(self, way: Way, moment: Moment, past: ConversationHistory, prices: CachePrices) -> Places:
        if way == "whole":
            return moment.all
        if past.looping and moment.held is not None and moment.base <= moment.held:
            return moment.held  # another step of the same turn
        return frozenset(verdict(moment, prices).places)

    def _learn(
        self,
        key: str,
        moment: Moment,
        before: RelevantTools,
        now: RelevantTools,
        prices: CachePrices,
        beside: int,
        *,
        first: bool,
    ) -> None:
        seen = turned(moment, before, now, first=first, returned=True)
        seen = replace(seen, wanted=seen.wanted + beside)
        if first:
            kept, alike = self._statistics.neighbours(key, now.before, prices)
            seen = replace(seen, kept=kept, alike=alike)
        self._statistics.note(key, seen)


FIELDS = ("before", "any", "called")


def _remembered(state: Mapping[str, Any], ids: Sequence[ToolId]) -> RelevantTools:
    said = state.get(CACHE) or {}
    places = {name: _places(ids, frozenset(said.get(name) or ())) for name in FIELDS}
    return RelevantTools(**places, changed=int(said.get("changed") or 0))


def _places(ids: Sequence[ToolId], names: frozenset[str]) -> Places:
    """The places of tools that are named with their server or without."""
    return frozenset(at for at, tool in enumerate(ids) if str(tool) in names or tool.name in names)


def _names(ids: Sequence[ToolId], places: Places) -> list[str]:
    return [str(ids[place]) for place in sorted(places)]
