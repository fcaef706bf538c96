"""What conversations of a key are like is learnt from them, and decides which way the next one takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import httpx2
import pytest

from back_office import LOAN, MONEY, PATHS, WEATHER, asking
from model_bodies import CODECS
from model_doors import gateway
from pegboard import Catalog
from pegboard.errors import StoreError
from pegboard.gateways import lasting_work
from pegboard.gateways.llm.conversation import turn_statistics
from pegboard.gateways.llm.conversation.stickiness import LEAST_SEEN
from pegboard.gateways.llm.conversation.turn_statistics import TurnStatistics
from pegboard.gateways.llm.selection.board_cache import BoardCache
from pegboard.gateways.llm.selection.policy import Filtered, Policy
from pegboard.gateways.llm.selection.policy_rules import treatment
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.habits import habits_of
from pegboard.routing import PROFILES, Profile
from pegboard.routing_board import RoutingBoard
from pegboard.settings.llm import PolicySettings, UpstreamSettings, Way
from pegboard.stores import MemoryEmbeddings, MemoryEvents, MemoryLessons
from pegboard.testing import FakeClock, FakeEncoder

CHAT = "openai_chat"
ASKED = [WEATHER, LOAN, MONEY]
FORCED = {"type": "function", "function": {"name": "water_plants"}}
TURNS = 12
NUMBERS = count()


def board_of(catalog: Catalog, profile: Profile) -> RoutingBoard:
    encoder = FakeEncoder()
    return RoutingBoard(catalog, profile, documents=encoder, queries=encoder, events=MemoryEvents(), clock=FakeClock())


def policy(*ways: Way) -> Policy:
    return Policy(profile=PROFILES["semantic"].with_overrides(k=1), provider="openai", ways=ways or ("whole", "tools"))


class Replica:
    """One gateway's part that picks, and the clock it goes by."""

    def __init__(self, store: MemoryLessons | None = None) -> None:
        self.clock = FakeClock()
        self.turn_statistics = TurnStatistics(self.clock, store)
        self.selector = Selector(BoardCache(board_of), self.clock, self.turn_statistics)

    async def asked(self, said: Sequence[str], *ways: Way, **more: Any) -> Filtered:
        codec = CODECS[CHAT]
        request = codec.parse(json.dumps(asking(CHAT, said) | more).encode(), "")
        return await self.selector.select(codec, request, policy(*ways), owner="me")

    async def talk(self, turns: int, *ways: Way) -> list[Filtered]:
        """A conversation of its own in which each turn wants something else."""
        number = next(NUMBERS)
        said = [f"{ASKED[turn % 3]} ({number})" for turn in range(turns)]
        found = []
        for turn in range(1, turns + 1):
            found.append(await self.asked(said[:turn], *ways))
            self.clock.advance(20)
        return found


async def test_until_enough_is_known_tools_are_picked() -> None:
    replica = Replica()

    for _ in range(LEAST_SEEN):
        first, *_ = await replica.talk(1)
        assert (first.way, len(first.kept.places)) == ("tools", 1)


async def test_where_changing_intents_cost_more_than_all_tools_later_conversations_are_left_alone() -> None:
    replica = Replica()
    for _ in range(3 * LEAST_SEEN):
        await replica.talk(TURNS)

    found = await replica.talk(3)

    assert {each.way for each in found} == {"whole"}
    assert all(len(each.kept.places) == 34 for each in found)
    assert "left alone" in found[0].left_alone


async def test_where_it_may_one_tool_takes_the_place_of_all() -> None:
    replica = Replica()
    for _ in range(3 * LEAST_SEEN):
        await replica.talk(TURNS, "whole", "tools", "call_tool")

    first, second, third = await replica.talk(3, "whole", "tools", "call_tool")

    assert {first.way, second.way, third.way} == {"call_tool"}
    assert [len(each.kept.places) for each in (first, second, third)] == [1, 2, 3]
    assert first.tokens_after < first.tokens_before


async def test_a_request_that_cannot_go_by_one_tool_is_picked_for_and_the_next_goes_that_way_again() -> None:
    replica, said = Replica(), [WEATHER]
    ways: tuple[Way, ...] = ("call_tool",)
    await replica.asked(said, *ways)

    forced = await replica.asked([*said, LOAN], *ways, tool_choice=FORCED)
    after = await replica.asked([*said, LOAN, MONEY], *ways)

    assert (forced.way, forced.no_call_tool) == ("tools", "it says which tools may be called")
    assert after.way == "call_tool"


async def test_where_each_request_stands_alone_tools_go_on_being_picked() -> None:
    replica = Replica()
    for _ in range(3 * LEAST_SEEN):
        await replica.talk(1)
        replica.clock.advance(3600)

    assert (await replica.talk(1))[0].way == "tools"


async def test_whoever_names_one_way_gets_that() -> None:
    replica = Replica()
    for _ in range(3 * LEAST_SEEN):
        await replica.talk(TURNS, "tools")

    assert {each.way for each in await replica.talk(3, "tools")} == {"tools"}


async def test_a_conversation_keeps_the_way_that_it_began_with() -> None:
    replica = Replica()
    said = [f"{WEATHER} (the first of all)"]
    assert (await replica.asked(said)).way == "tools"
    for _ in range(3 * LEAST_SEEN):
        await replica.talk(TURNS)

    assert (await replica.asked([*said, LOAN])).way == "tools"
    assert (await replica.talk(1))[0].way == "whole"


async def test_replicas_on_one_store_learn_from_each_other_and_take_the_same_way() -> None:
    store = MemoryLessons()
    one, other = Replica(store), Replica(store)
    for _ in range(3 * LEAST_SEEN):
        await one.talk(TURNS)
    await one.turn_statistics.flush()
    await other.talk(1)  # it has to have heard of the key
    await other.turn_statistics.flush()

    assert (await one.talk(1))[0].way == (await other.talk(1))[0].way == "whole"


async def test_what_two_saw_is_summed_up_once() -> None:
    store = MemoryLessons()
    replicas = [Replica(store), Replica(store)]
    for replica in replicas:
        for _ in range(2):
            await replica.talk(3)
            await replica.turn_statistics.flush()
            await replica.turn_statistics.flush()

    (key,) = replicas[0].turn_statistics.keys
    (seen,) = (await store.read([key])).values()
    assert (seen.conversations, seen.requests, seen.later) == (4, 12, 8)


class Away(MemoryLessons):
    """A store that can be away."""

    away = True

    async def add(self, sums: Any) -> None:
        if self.away:
            raise StoreError("away")
        await super().add(sums)


async def test_what_is_learnt_while_the_store_is_away_is_told_when_it_is_back() -> None:
    store = Away()
    replica = Replica(store)
    await replica.talk(3)
    await replica.turn_statistics.flush()
    await replica.talk(2)
    store.away = False
    await replica.turn_statistics.flush()

    (seen,) = (await store.read(replica.turn_statistics.keys)).values()
    assert (seen.conversations, seen.requests) == (2, 5)


@pytest.mark.parametrize("key", ["", "eve"])
async def test_no_caller_makes_what_was_learnt_from_others_be_forgotten(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(turn_statistics, "MOST_KEYS", 8)
    replica = Replica()
    for _ in range(3 * LEAST_SEEN):
        await replica.talk(TURNS)
    codec = CODECS[CHAT]
    for number in range(20):
        owner = f"owner {number}" if key else "you"
        body = asking(CHAT, [LOAN])
        body["messages"].insert(0, {"role": "system", "content": f"It is {number} o'clock."})
        request = codec.parse(json.dumps(body).encode(), "")
        request = replace(request, turn=replace(request.turn, habits=habits_of(key, owner)))
        await replica.selector.select(codec, request, policy(), owner=owner)

    assert (await replica.talk(1))[0].way == "whole"
    assert len(replica.turn_statistics.keys) == 8


async def test_the_header_and_the_event_say_that_a_request_was_left_alone_and_why() -> None:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with gateway(parts=parts, policy={"k": 1, "ways": ["whole"]}) as door:
        async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
            await client.post(PATHS[CHAT], json=asking(CHAT, [WEATHER]))

        assert door.said["x-pegboard-filter"] == "unchanged"
        assert door.said["x-pegboard-tools"] == "34/34"
        assert door.said["x-pegboard-cache"].startswith("whole; left alone: ")
        assert len(door.mock.last.json["tools"]) == 34


@pytest.mark.parametrize(
    ("url", "format_"),
    [
        ("https://api.anthropic.com", "anthropic"),
        ("https://api.openai.com", "openai"),
        ("https://generativelanguage.googleapis.com", "gemini"),
    ],
)
def test_beside_an_agents_own_tools_others_are_deferred_only_if_configured(url: str, format_: str) -> None:
    upstream = UpstreamSettings(url=url, format=format_)

    assert treatment(PolicySettings(), upstream).policy.beside == ("whole", "call_tool")
    assert treatment(PolicySettings(ways=("defer",)), upstream).policy.beside == ("defer",)


async def test_sums_are_shared_again_after_a_failure_that_nobody_had_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_statistics, "FLUSH_SECONDS", 0)
    monkeypatch.setattr(lasting_work, "RESTART_SECONDS", 0)
    again = asyncio.Event()

    class Flushing(TurnStatistics):
        flushes = 0

        async def flush(self) -> None:
            self.flushes += 1
            if self.flushes == 1:
                raise RuntimeError
            again.set()

    async with Flushing(FakeClock()).shared():
        await asyncio.wait_for(again.wait(), 60)
