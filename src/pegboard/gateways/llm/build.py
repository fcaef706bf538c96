"""Builds the LLM gateway of a configuration."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing, suppress
from weakref import WeakSet, WeakValueDictionary

from pegboard.call_charges import CallCharges
from pegboard.caller_limits import RateLimiter
from pegboard.catalog import BpeCounter
from pegboard.compose import Parts, boards_of_requests, warn_of_threshold
from pegboard.gateways.llm.conversation.answer_store import AnswerStore
from pegboard.gateways.llm.conversation.history import ProviderHistories
from pegboard.gateways.llm.conversation.turn_statistics import TurnStatistics
from pegboard.gateways.llm.proxy.app import LlmApp
from pegboard.gateways.llm.proxy.config_checks import notes, warnings
from pegboard.gateways.llm.proxy.current_app import RANKED_BY, Models
from pegboard.gateways.llm.proxy.keys import IsToken
from pegboard.gateways.llm.proxy.model_spans import ModelSpans
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.filter import RequestFilter
from pegboard.gateways.llm.selection.policy_rules import Policies
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.gateways.llm.shadow.recorder import Recorder
from pegboard.gateways.llm.tool_results.request_results import RequestResults
from pegboard.gateways.llm.tool_search.searched_items import SearchedItems, ServersOf, no_servers
from pegboard.library.item_search import item_search
from pegboard.programs.runner import ProgramRunner, require_sandbox
from pegboard.protocols import Clock
from pegboard.retrieval.encoders.embedding_caches import ToolEmbeddings
from pegboard.settings import Settings
from pegboard.settings.storage import SpendSettings
from pegboard.telemetry.event_log import FanOut
from pegboard.telemetry.otel.histograms import Histograms
from pegboard.telemetry.shadow_counts import FILE, ShadowCounts

LOGGER = logging.getLogger(__name__)


@asynccontextmanager
async def open_models(
    settings: Settings,
    parts: Parts,
    is_token: IsToken = lambda text: False,
    histograms: Histograms | None = None,
    servers: ServersOf = no_servers,
) -> AsyncIterator[Models]:
    """The LLM gateway with connections to the configured upstreams, and to those of later configurations.

    ``is_token`` recognizes the MCP gateway's tokens; ``histograms`` gets the tokens that providers count; ``servers``
    are those of the MCP gateway, whose prompts and resources searches find.
    Raises ConfigError.
    """
    await asyncio.to_thread(BpeCounter().count, [""])  # loads its tables before the first request
    async with AsyncExitStack() as stack:
        turn_statistics = TurnStatistics(parts.clock, parts.lessons)
        filters = await stack.enter_async_context(aclosing(Filters(parts, parts.clock, turn_statistics, servers)))
        await stack.enter_async_context(turn_statistics.shared())
        if parts.learner is not None:
            await stack.enter_async_context(parts.learner.book.shared())
        counts = stack.enter_context(closing(ShadowCounts(settings.state_dir / FILE)))
        events = FanOut([parts.events, counts])
        recorder = None
        if settings.llm.serves and settings.llm.record is not None:
            LOGGER.warning(
                "Requests are recorded to %s, including everything that users say in them.", settings.llm.record
            )
            recorder = stack.enter_context(closing(Recorder(settings.llm.record, settings.llm.most_recorded)))

        charges = await stack.enter_async_context(_charges(parts))

        def app_of(settings: Settings) -> LlmApp:
            chosen = settings.llm
            policies = Policies(chosen)
            app = LlmApp(
                chosen,
                filters.of(settings),
                policies=policies,
                events=events,
                clock=parts.clock,
                recorder=recorder,
                is_token=is_token,
                names=settings.allowed_hosts,
                audit=parts.audit,
                rates=RateLimiter(parts.rates, settings.rates, parts.clock),
                prices=settings.activity.table,
                charges=charges,
                results=RequestResults(settings.results, BpeCounter(), programs=_programs(settings)),
                spans=ModelSpans(parts.tracer, histograms) if parts.tracer is not None else None,
            )
            _announce(settings, policies, parts)
            return app

        models = Models(app_of)
        stack.push_async_callback(models.close)
        await models.prepare(settings)()
        yield models


@asynccontextmanager
async def _charges(parts: Parts) -> AsyncIterator[CallCharges]:
    """What budgets for models are kept by; what the store could not take is settled until the end."""
    charges = CallCharges(parts.spend, SpendSettings(), parts.clock)
    task = asyncio.create_task(charges.run())
    try:
        yield charges
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await charges.close()


def _programs(settings: Settings) -> ProgramRunner | None:
    """What runs programs over shortened results; None where they are switched off. Raises ConfigError without the
    sandbox."""
    if settings.programs.mode == "off":
        return None
    require_sandbox()
    return ProgramRunner(settings.programs)


def _announce(settings: Settings, policies: Policies, parts: Parts) -> None:
    """Log what the operator should know."""
    for warning in warnings(settings.llm):
        LOGGER.warning(warning)
    for note in notes(settings.llm):
        LOGGER.info(note)
    for profile in policies.profiles():
        warn_of_threshold(profile, parts.encoder)


class Filters:
    """The filters of upstreams, across configurations: they share what is known of conversations and what was learnt.
    Close them at the end.

    Each upstream has its own share of the vector cache (the gateway article): an upstream with many tools does not
    evict another's vectors. The boards of a configuration are dropped when no application with its filters is left,
    which its requests under way hold.
    """

    def __init__(
        self, parts: Parts, clock: Clock, turn_statistics: TurnStatistics, servers: ServersOf = no_servers
    ) -> None:
        self._servers = servers
        self._parts = parts
        self._clock = clock
        self._turn_statistics = turn_statistics
        self._vectors = ToolEmbeddings()
        self._histories = ProviderHistories(answers=AnswerStore(parts.sessions), clock=clock)
        self._boards: WeakSet[BoardCache] = WeakSet()
        self._selectors: WeakValueDictionary[tuple[str, str], Selector] = WeakValueDictionary()

    def of(self, settings: Settings) -> dict[str, RequestFilter]:
        """The filters by upstream. What is known of an upstream is kept as long as the ranking settings stay the same
        and the filters are in use."""
        chosen, items = settings.llm, SearchedItems(own=item_search(settings.items), servers=self._servers)
        return {
            name: RequestFilter(
                self._selector(name, settings),
                self._histories,
                self._clock,
                timeout=chosen.filter_timeout,
                shadow_timeout=chosen.shadow_timeout,
                patience=chosen.patience,
                most=chosen.most_filtered,
                most_tools=chosen.most_tools,
                items=items,
            )
            for name in chosen.upstreams
        }

    def _selector(self, upstream: str, settings: Settings) -> Selector:
        key = upstream, repr([getattr(settings, name) for name in RANKED_BY])
        found = self._selectors.get(key)
        if found is None:
            boards = BoardCache(boards_of_requests(settings, self._parts, self._vectors.of(upstream)))
            self._boards.add(boards)
            found = self._selectors[key] = Selector(boards, self._clock, self._turn_statistics)
        return found

    async def aclose(self) -> None:
        for boards in tuple(self._boards):
            await boards.close()


@asynccontextmanager
async def open_filters(
    settings: Settings, parts: Parts, clock: Clock, statistics: TurnStatistics | None = None
) -> AsyncIterator[Mapping[str, RequestFilter]]:
    """The filter of each configured upstream."""
    async with aclosing(Filters(parts, clock, statistics or TurnStatistics(clock))) as filters:
        yield filters.of(settings)
