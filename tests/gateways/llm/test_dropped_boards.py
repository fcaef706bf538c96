"""What is known of an upstream's tools goes with the last configuration that uses it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import httpx2
import pytest

from model_bodies import asking
from model_doors import served
from model_upstream import ModelUpstream
from pegboard.compose import default_parts
from pegboard.events import Event, RouteDecided
from pegboard.gateways.llm import build
from pegboard.gateways.llm.build import open_models
from pegboard.gateways.llm.proxy.current_app import Models
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.model import Floats
from pegboard.settings import Settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from processes import until

CHAT = "/openai/v1/chat/completions"
POLICY = {"profile": "semantic", "ways": ["tools"], "least_tools": 0, "least_tokens": 0, "way_back": False}


class Waiting(FakeEncoder):
    """An encoder that waits until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.goes_on = asyncio.Event(), asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        self.asked.set()
        await self.goes_on.wait()
        return await super().encode(texts)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> WeakSet[BoardCache]:
    """The caches of boards that are still in memory."""
    found = WeakSet[BoardCache]()

    class Noted(BoardCache):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            found.add(self)

    monkeypatch.setattr(build, "BoardCache", Noted)
    return found


def choosing(upstream: ModelUpstream, k: int, budget: int = 1_000, *, texts: bool = False) -> Settings:
    llm = {"upstreams": {"openai": {"url": upstream.url}}, "patience": 60, "filter_timeout": 60}
    return Settings(budget=budget, activity={"texts": texts}, llm=llm | {"policy": POLICY | {"k": k}})


@asynccontextmanager
async def gateway(
    settings: Settings, encoder: FakeEncoder, **replaced: Any
) -> AsyncIterator[tuple[Models, httpx2.AsyncClient]]:
    parts = default_parts(settings, encoder=encoder, embeddings=MemoryEmbeddings(), **replaced)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(parts.close)
        models = await stack.enter_async_context(open_models(settings, parts))
        address = await stack.enter_async_context(served(models))
        client = httpx2.AsyncClient(trust_env=False, timeout=60, base_url=f"http://{address}")
        yield models, await stack.enter_async_context(client)


async def test_a_configuration_that_was_replaced_leaves_no_boards_behind(
    upstream: ModelUpstream, kept: WeakSet[BoardCache]
) -> None:
    async with gateway(choosing(upstream, 1), FakeEncoder()) as (models, http):
        for budget in range(1_000, 1_005):
            await models.prepare(choosing(upstream, 1, budget))()
            assert (await http.post(CHAT, json=asking("openai_chat", "beta"))).status_code == 200
        gc.collect()
        (last,) = kept

        await models.prepare(choosing(upstream, 2, budget))()
        gc.collect()
        assert list(kept) == [last], "the ranking is the same"
        assert len(last) == 1


async def test_texts_are_in_no_event_once_a_configuration_says_so(upstream: ModelUpstream) -> None:
    told: list[Event] = []
    with_texts, without = choosing(upstream, 1, texts=True), choosing(upstream, 1)
    async with gateway(with_texts, FakeEncoder(), events=SimpleNamespace(emit=told.append)) as (models, http):
        for settings, text in ((with_texts, "beta"), (without, "alpha")):
            await models.prepare(settings)()
            assert (await http.post(CHAT, json=asking("openai_chat", text))).status_code == 200

    queries = [event.query for event in told if isinstance(event, RouteDecided)]
    assert len(queries) == 2
    assert "beta" in queries[0]
    assert queries[1] == ""


async def test_a_request_under_way_gets_the_tools_of_the_configuration_that_it_began_with(
    upstream: ModelUpstream, kept: WeakSet[BoardCache]
) -> None:
    encoder = Waiting()
    async with gateway(choosing(upstream, 1), encoder) as (models, http):
        begun = asyncio.create_task(http.post(CHAT, json=asking("openai_chat", "beta")))
        await encoder.asked.wait()
        await models.prepare(choosing(upstream, 2, 2_000))()
        gc.collect()
        assert len(kept) == 2

        encoder.goes_on.set()
        assert (await begun).status_code == 200
        assert upstream.tools == ["beta"]
        await until(lambda: gc.collect() >= 0 and len(kept) == 1)
