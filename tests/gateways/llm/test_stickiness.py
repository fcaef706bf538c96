"""Over the turns of a conversation: its tools stay where they are, through real gateways before mock providers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import httpx2
import pytest

from back_office import INTENTS, JOBS_ASKED, LOAN, MONEY, PATHS, SESSION, WEATHER, asking, spoken
from model_bodies import CODECS, FORMATS, called
from model_doors import Gateway, gateway
from pegboard import Catalog
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.policy import Policy
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.routing import PROFILES, Profile
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder
from processes import until

formats = pytest.mark.parametrize("name", FORMATS)


@asynccontextmanager
async def opened(**policy: Any) -> AsyncIterator[Gateway]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with gateway(parts=parts, policy={"k": 1} | policy) as found:
        yield found


@pytest.fixture
async def door() -> AsyncIterator[Gateway]:
    async with opened() as found:
        yield found


@pytest.fixture
async def replica() -> AsyncIterator[Gateway]:
    async with opened() as found:
        yield found


async def sent(door: Gateway, name: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> list[str]:
    """The tools that arrive at the provider, as text."""
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(PATHS[name], json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    arrived = door.mock.last.json.get("tools", [])
    return [json.dumps(tool) for tool in (arrived[0]["functionDeclarations"] if name == "gemini" else arrived)]


def names(arrived: Sequence[str]) -> list[str]:
    read = [json.loads(tool) for tool in arrived]
    return [tool.get("function", tool)["name"] for tool in read]


@pytest.mark.requirement("P3", "P18", "P19")
@formats
async def test_over_a_conversation_the_tools_are_the_same_bytes_until_a_new_intent_needs_another(
    door: Gateway, name: str
) -> None:
    arrived = [await sent(door, name, asking(name, SESSION[:turn])) for turn in range(1, 13)]

    assert names(arrived[0]) == ["weather_forecast"]
    for before, after, intent in zip(arrived, arrived[1:], INTENTS[1:], strict=False):
        assert set(intent) <= set(names(after))
        assert after == before or not set(intent) <= set(names(before))
    assert len(set(map(tuple, arrived))) <= 3


@pytest.mark.requirement("P13", "P19")
@formats
async def test_the_steps_of_a_loop_and_the_turn_after_it_have_the_same_tools(door: Gateway, name: str) -> None:
    first = await sent(door, name, asking(name, [WEATHER]))
    step = await sent(door, name, asking(name, [WEATHER], *called(name, "weather_forecast", MONEY)))
    more = [*called(name, "weather_forecast"), spoken(name, "assistant", "Rain."), spoken(name, "user", "thanks")]
    after = await sent(door, name, asking(name, [WEATHER], *more))

    assert names(first) == ["weather_forecast"]
    assert first == step == after
    assert door.said["x-pegboard-cache"].startswith("kept; ")


@pytest.mark.requirement("P19")
@formats
async def test_two_replicas_send_the_same_tools_whoever_served_the_turns_before(
    door: Gateway, replica: Gateway, name: str
) -> None:
    served = (door, replica)
    for turn in range(1, 12):
        await sent(served[turn % 2], name, asking(name, SESSION[:turn]))

    last = [await sent(each, name, asking(name, SESSION)) for each in served]

    assert last[0] == last[1]
    assert set(names(last[0])) >= JOBS_ASKED


@pytest.mark.requirement("P19")
@formats
async def test_a_gateway_that_has_seen_nothing_of_a_conversation_sends_what_the_history_asks_for(
    door: Gateway, replica: Gateway, name: str
) -> None:
    long = [await sent(door, name, asking(name, SESSION[:turn])) for turn in range(1, 13)]

    assert await sent(replica, name, asking(name, SESSION)) == long[-1]
    assert replica.said["x-pegboard-cache"] == door.said["x-pegboard-cache"]


@pytest.mark.requirement("P19")
async def test_two_tenants_with_one_name_for_their_conversations_never_see_each_others_tools(door: Gateway) -> None:
    async def ask(key: str, said: str) -> list[str]:
        headers = {"authorization": f"Bearer {key}", "x-pegboard-conversation": "support"}
        return names(await sent(door, "openai_chat", asking("openai_chat", [said]), headers))

    assert await ask("mine", LOAN) == ["renew_loan"]
    assert await ask("yours", WEATHER) == ["weather_forecast"]
    assert "weather_forecast" not in await ask("mine", MONEY)
    assert "renew_loan" not in await ask("yours", MONEY)
    assert door.mock.last.header("x-pegboard-conversation") is None


@pytest.mark.requirement("P3", "P19")
async def test_a_conversation_that_the_provider_keeps_keeps_its_tools_too(door: Gateway) -> None:
    arrived, before = [], None
    for said in SESSION:
        body = asking("openai_responses", [said]) | ({"previous_response_id": before} if before else {})
        arrived.append(await sent(door, "openai_responses", body))
        before = f"answer_{len(door.mock.answers) - 1}"

    assert len(set(map(tuple, arrived))) <= 3
    assert set(names(arrived[-1])) >= JOBS_ASKED


async def test_what_was_done_and_why_is_in_a_header_and_in_the_event(door: Gateway) -> None:
    for turn in (1, 2, 4):
        await sent(door, "openai_chat", asking("openai_chat", SESSION[:turn]))

    kinds = [said["x-pegboard-cache"].partition("; ") for said in door.noting.said]
    await until(lambda: len(door.events.of(ModelRequestServed)) == 3)
    told = [asdict(event) for event in door.events.of(ModelRequestServed)]
    assert [kind for kind, _, _ in kinds] == ["first", "kept", "grown"] == [event["cache"] for event in told]
    assert all(reason for _, _, reason in kinds)
    assert all(event["cache_bill"] > 0 < event["cache_bill_whole"] for event in told)


@pytest.mark.requirement("P19")
@formats
async def test_what_was_sent_in_advance_for_later_turns_is_sent_by_every_replica(name: str) -> None:
    async with opened(turns=20) as door, opened(turns=20) as replica:
        long = [await sent(door, name, asking(name, SESSION[:turn])) for turn in range(1, 13)]

        assert len(long[0]) > 1
        assert await sent(replica, name, asking(name, SESSION)) == long[-1]


async def test_after_a_rest_that_outlasts_the_cache_the_tools_are_chosen_anew() -> None:
    clock = FakeClock()
    selector = Selector(BoardCache(board_of), clock)
    policy = Policy(profile=PROFILES["semantic"].with_overrides(k=1), provider="openai")

    async def select(*said: str) -> tuple[str, list[str]]:
        request = CODECS["openai_chat"].parse(json.dumps(asking("openai_chat", said)).encode(), "")
        filtered = await selector.select(CODECS["openai_chat"], request, policy)
        assert filtered.verdict is not None
        return filtered.verdict.kind, [request.tools[place].name for place in filtered.kept.places]

    await select(WEATHER)
    kind, before = await select(WEATHER, LOAN)
    assert kind == "grown"
    clock.advance(60)
    assert await select(WEATHER, LOAN, LOAN) == ("kept", before)
    clock.advance(3600)

    kind, after = await select(WEATHER, LOAN, LOAN, LOAN)

    assert kind != "kept"
    assert "renew_loan" in after
    assert after != before


def board_of(catalog: Catalog, profile: Profile) -> RoutingBoard:
    encoder = FakeEncoder()
    return RoutingBoard(catalog, profile, documents=encoder, queries=encoder, events=MemoryEvents(), clock=FakeClock())


async def test_without_stickiness_each_turn_has_its_own_tools() -> None:
    async with opened(sticky=False) as door:
        arrived = [await sent(door, "openai_chat", asking("openai_chat", SESSION[:turn])) for turn in (1, 4)]

        assert [names(tools) for tools in arrived] == [["weather_forecast"], ["renew_loan"]]
        assert "x-pegboard-cache" not in door.said


@pytest.mark.requirement("P25")
async def test_each_turn_is_read_by_the_encoder_once_however_long_the_conversation_gets() -> None:
    encoder = FakeEncoder()
    async with gateway(parts={"encoder": encoder, "embeddings": MemoryEmbeddings()}, policy={"k": 1}) as door:
        for turn in (1, 2, 3, 12, 12):
            await sent(door, "openai_chat", asking("openai_chat", SESSION[:turn]))
            await sent(door, "openai_chat", asking("openai_chat", SESSION[:turn], *called("openai_chat", "unit_3")))

    texts = [text for text in encoder.encoded if "sensor" not in text]
    assert len(texts) == len(set(texts))
