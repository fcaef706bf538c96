"""The LLM gateway of a configuration, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing

from pegboard.catalog import BpeCounter
from pegboard.compose import Parts, boards_of_requests, warn_of_threshold
from pegboard.gateways.llm.boards import Boards
from pegboard.gateways.llm.config_checks import notes, warnings
from pegboard.gateways.llm.door import LlmDoor
from pegboard.gateways.llm.filtering import Filter
from pegboard.gateways.llm.history import Histories
from pegboard.gateways.llm.keys import IsToken
from pegboard.gateways.llm.learning import Learning
from pegboard.gateways.llm.models import RANKED_BY, Models
from pegboard.gateways.llm.policies import Policies
from pegboard.gateways.llm.recording import Recorder
from pegboard.gateways.llm.selecting import Selector
from pegboard.seams import Clock
from pegboard.settings import Settings
from pegboard.stores import FanOut, ToolEmbeddings
from pegboard.stores.shadow import FILE, ShadowCounts

LOGGER = logging.getLogger(__name__)


@asynccontextmanager
async def open_models(
    settings: Settings, parts: Parts, is_token: IsToken = lambda text: False
) -> AsyncIterator[Models]:
    """The LLM gateway with connections to the configured upstreams, and to those of configurations that come after.

    ``is_token`` knows the MCP gateway's tokens. Raises ConfigError.
    """
    await asyncio.to_thread(BpeCounter().count, [""])  # its tables are there before the first request is
    async with AsyncExitStack() as stack:
        learning = Learning(parts.clock, parts.lessons)
        filters = await stack.enter_async_context(aclosing(Filters(parts, parts.clock, learning)))
        await stack.enter_async_context(learning.shared())
        counts = stack.enter_context(closing(ShadowCounts(settings.state_dir / FILE)))
        events = FanOut([parts.events, counts])
        recorder = None
        if settings.llm.serves and settings.llm.record is not None:
            LOGGER.warning("Requests are recorded to %s, with all that users say in them.", settings.llm.record)
            recorder = stack.enter_context(closing(Recorder(settings.llm.record, settings.llm.most_recorded)))

        def door_of(settings: Settings) -> LlmDoor:
            chosen = settings.llm
            policies = Policies(chosen)
            door = LlmDoor(
                chosen,
                filters.of(settings),
                policies=policies,
                events=events,
                clock=parts.clock,
                recorder=recorder,
                is_token=is_token,
                names=settings.allowed_hosts,
            )
            _announce(settings, policies, parts)
            return door

        models = Models(door_of)
        stack.push_async_callback(models.close)
        await models.prepare(settings)()
        yield models


def _announce(settings: Settings, policies: Policies, parts: Parts) -> None:
    """What whoever configured this should know."""
    for warning in warnings(settings.llm):
        LOGGER.warning(warning)
    for note in notes(settings.llm):
        LOGGER.info(note)
    for profile in policies.profiles():
        warn_of_threshold(profile, parts.encoder)


class Filters:
    """The filters of upstreams, of one configuration after another: they know the same conversations, and learn
    together. Close them in the end.

    Each upstream is an API of its own in the cache of vectors (seed 003): one with many tools costs no other its.
    """

    def __init__(self, parts: Parts, clock: Clock, learning: Learning) -> None:
        self._parts = parts
        self._clock = clock
        self._learning = learning
        self._vectors, self._histories = ToolEmbeddings(), Histories()
        self._boards: list[Boards] = []
        self._selectors: dict[tuple[str, str], Selector] = {}

    def of(self, settings: Settings) -> dict[str, Filter]:
        """By upstream. What an upstream was asked before is known as long as tools are ranked by the same settings."""
        chosen = settings.llm
        return {
            name: Filter(
                self._selector(name, settings),
                self._histories,
                self._clock,
                timeout=chosen.filter_timeout,
                shadow_timeout=chosen.shadow_timeout,
                patience=chosen.patience,
                most=chosen.most_filtered,
            )
            for name in chosen.upstreams
        }

    def _selector(self, upstream: str, settings: Settings) -> Selector:
        key = upstream, repr([getattr(settings, name) for name in RANKED_BY])
        if key not in self._selectors:
            boards = Boards(boards_of_requests(settings, self._parts, self._vectors.of(upstream)))
            self._boards.append(boards)
            self._selectors[key] = Selector(boards, self._clock, self._learning)
        return self._selectors[key]

    async def aclose(self) -> None:
        for boards in self._boards:
            await boards.close()


@asynccontextmanager
async def open_filters(
    settings: Settings, parts: Parts, clock: Clock, learning: Learning | None = None
) -> AsyncIterator[Mapping[str, Filter]]:
    """The filter of each configured upstream."""
    async with aclosing(Filters(parts, clock, learning or Learning(clock))) as filters:
        yield filters.of(settings)
