"""The LLM gateway of a configuration, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing

from pegboard.catalog import BpeCounter
from pegboard.compose import Parts, boards_of_requests
from pegboard.gateways.llm.boards import Boards
from pegboard.gateways.llm.door import LlmDoor
from pegboard.gateways.llm.filtering import Filter
from pegboard.gateways.llm.history import Histories
from pegboard.gateways.llm.learning import Learning
from pegboard.gateways.llm.recording import Recorder
from pegboard.gateways.llm.selecting import Selector
from pegboard.seams import Clock
from pegboard.settings import Settings
from pegboard.stores import FanOut, ToolEmbeddings
from pegboard.stores.shadow import FILE, ShadowCounts

LOGGER = logging.getLogger(__name__)


@asynccontextmanager
async def open_models(settings: Settings, parts: Parts) -> AsyncIterator[LlmDoor]:
    """The door before the configured upstreams, with connections to them. Raises ConfigError."""
    chosen = settings.llm
    await asyncio.to_thread(BpeCounter().count, [""])  # its tables are there before the first request is
    async with AsyncExitStack() as stack:
        learning = Learning(parts.clock, parts.lessons)
        filters = await stack.enter_async_context(open_filters(settings, parts, parts.clock, learning))
        await stack.enter_async_context(learning.shared())
        counts = stack.enter_context(closing(ShadowCounts(settings.state_dir / FILE)))
        recorder = None
        if chosen.record is not None:
            LOGGER.warning("Requests are recorded to %s, with all that users say in them.", chosen.record)
            recorder = stack.enter_context(closing(Recorder(chosen.record, chosen.most_recorded)))
        events = FanOut([parts.events, counts])
        door = LlmDoor(chosen, filters, events=events, clock=parts.clock, recorder=recorder)
        yield await stack.enter_async_context(door.opened())


@asynccontextmanager
async def open_filters(
    settings: Settings, parts: Parts, clock: Clock, learning: Learning | None = None
) -> AsyncIterator[Mapping[str, Filter]]:
    """The filter of each configured upstream; they know the same conversations, and learn together.

    Each upstream is an API of its own in the cache of vectors (seed 003): one with many tools costs no other its.
    """
    chosen = settings.llm
    vectors, histories = ToolEmbeddings(), Histories()
    learning = learning or Learning(clock)
    boards = {name: Boards(boards_of_requests(settings, parts, vectors.of(name))) for name in chosen.upstreams}
    try:
        yield {
            name: Filter(
                Selector(of_one, clock, learning),
                histories,
                clock,
                timeout=chosen.filter_timeout,
                shadow_timeout=chosen.shadow_timeout,
                patience=chosen.patience,
                most=chosen.most_filtered,
            )
            for name, of_one in boards.items()
        }
    finally:
        for of_one in boards.values():
            await of_one.close()
