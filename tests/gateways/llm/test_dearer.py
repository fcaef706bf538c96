"""What a conversation costs is counted while it goes on: searches, tools that came back, turns that failed open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from back_office import JOBS, LOAN, MONEY, PATHS, WEATHER, asking
from mock_providers.scripted import Calls, Says, Seen
from model_bodies import CODECS, FORMATS, PATH, called
from model_doors import Gateway, gateway
from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

formats = pytest.mark.parametrize("name", FORMATS)
LATER = ("water_plants", "unit_3", "unit_17", "unit_29")
"""What the model turns out to need, one after the other."""


class Failing(FakeEncoder):
    """An encoder that is away for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.away = False

    async def encode(self, texts: Sequence[str]) -> Floats:
        if self.away:
            raise EncoderError("Away.")
        return await super().encode(texts)


@asynccontextmanager
async def opened(encoder: FakeEncoder, **policy: Any) -> AsyncIterator[Gateway]:
    parts = {"encoder": encoder, "embeddings": MemoryEmbeddings()}
    async with gateway(parts=parts, policy={"k": 1} | policy) as found:
        yield found


@pytest.fixture
async def door() -> AsyncIterator[Gateway]:
    async with opened(FakeEncoder(), way_back=True) as found:
        yield found


async def sent(door: Gateway, name: str, body: dict[str, Any]) -> list[list[str]]:
    """The tools of each request that this one led to."""
    before = len(door.mock.received)
    more = {"store": False} if name == "openai_responses" else {}
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(PATHS[name], json=body | more)
    assert answer.status_code == 200, answer.text
    return [[tool.name for tool in CODECS[name].parse(each.body, PATH).tools] for each in door.mock.received[before:]]


def looks_for(tool: str) -> Callable[[Seen], Says]:
    def model(seen: Seen) -> Says:
        if tool in seen.tools:
            return Says(calls=[Calls(tool=tool)])
        return Says(calls=[Calls(tool="search_tools", arguments={"query": JOBS[tool]})])

    return model


@pytest.mark.requirement("A3")
@formats
async def test_all_that_a_search_found_stays_with_the_conversation(door: Gateway, name: str) -> None:
    door.mock.model = looks_for("water_plants")
    first, second = await sent(door, name, asking(name, [WEATHER]))

    door.mock.model = None
    (third,) = await sent(door, name, asking(name, [WEATHER], *called(name, "water_plants")))

    assert set(second) - set(first) == {tool for tool in second if tool not in first}
    assert len(set(second) - set(first)) == 5
    assert third == second


@pytest.mark.requirement("A3")
@formats
async def test_a_conversation_that_searches_again_and_again_gets_all_its_tools(door: Gateway, name: str) -> None:
    steps: list[dict[str, Any]] = []
    arrived: list[list[str]] = []
    for tool in LATER:
        door.mock.model = looks_for(tool)
        arrived += await sent(door, name, asking(name, [WEATHER], *steps))
        steps += called(name, tool)
    door.mock.model = None
    arrived += await sent(door, name, asking(name, [WEATHER, LOAN], *steps))

    assert set(JOBS) <= set(arrived[-1])
    last = next(number for number, tools in enumerate(arrived) if set(JOBS) <= set(tools))
    assert all(set(JOBS) <= set(tools) for tools in arrived[last:])
    assert door.said["x-pegboard-cache"].startswith("whole; left alone")


@pytest.mark.requirement("A4")
@formats
async def test_the_tools_of_a_turn_that_failed_open_stay_with_its_conversation(name: str) -> None:
    encoder = Failing()
    async with opened(encoder, profile="semantic") as door:
        await sent(door, name, asking(name, [LOAN]))
        encoder.away = True
        (failed,) = await sent(door, name, asking(name, [WEATHER]))
        assert door.said["x-pegboard-filter"] == "failed"

        encoder.away = False
        (step,) = await sent(door, name, asking(name, [WEATHER], *called(name, "unit_3")))
        (after,) = await sent(door, name, asking(name, [WEATHER, MONEY]))

    assert len(failed) == len(JOBS)
    assert step == failed
    assert after == failed
    assert door.said["x-pegboard-cache"].startswith("kept; ")


@pytest.mark.requirement("A4")
async def test_so_do_those_of_a_turn_that_asked_not_to_be_filtered() -> None:
    async with opened(FakeEncoder(), optional=True) as door, httpx2.AsyncClient(base_url=door.url) as client:
        body = asking("openai_chat", [WEATHER])
        await client.post(PATHS["openai_chat"], json=body, headers={"x-pegboard-filter": "off"})
        (after,) = await sent(door, "openai_chat", asking("openai_chat", [WEATHER, MONEY]))

    assert len(after) == len(JOBS)


@pytest.mark.requirement("A3")
async def test_searches_and_what_they_bring_are_learnt_as_news() -> None:
    async with opened(FakeEncoder(), way_back=True) as door:
        for number in range(12):
            steps: list[dict[str, Any]] = []
            for tool in LATER:
                door.mock.model = looks_for(tool)
                await sent(door, "anthropic", asking("anthropic", [f"{WEATHER} ({number})"], *steps))
                steps += called("anthropic", tool)
        door.mock.model = None
        for attempt in range(300):  # what was seen counts once the store has been told, which is every few seconds
            (last,) = await sent(door, "anthropic", asking("anthropic", [f"{WEATHER} (once more, {attempt})"]))
            if len(last) == len(JOBS):
                break
            await asyncio.sleep(0.1)

    assert set(last) == set(JOBS)
    assert door.said["x-pegboard-cache"].startswith("whole; left alone")
