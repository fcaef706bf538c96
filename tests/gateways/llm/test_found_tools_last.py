"""Tools that a search found join the end of the list and stay there: what precedes them stays in the prompt cache."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from back_office import JOBS, PATHS, WEATHER, asking, spoken
from mock_providers import Received
from mock_providers.scripted import Calls, Model, Says, Seen
from model_bodies import CODECS, FORMATS, PATH, called, forcing
from model_doors import Gateway, gateway
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

SEARCH = "search_tools"
POLICY = {"k": 1, "ways": ["tools"], "way_back": True}
formats = pytest.mark.parametrize("name", FORMATS)


@pytest.fixture
async def door() -> AsyncIterator[Gateway]:
    async with gateway(parts={"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}, policy=POLICY) as found:
        yield found


def wanting(tool: str) -> Model:
    """A model that calls this tool, having searched for it, and is done once it has answered."""

    def model(seen: Seen) -> Says:
        if tool in seen.answered:
            return Says(text="Done.")
        if tool in seen.tools:
            return Says(calls=[Calls(tool=tool)])
        return Says(calls=[Calls(tool=SEARCH, arguments={"query": JOBS[tool]})])

    return model


async def sent(door: Gateway, name: str, tool: str, *more: dict[str, Any], own: Any = ()) -> list[list[str]]:
    """The tools of each request that arrives for one of the client's, whose model wants this tool."""
    return [[tool for tool, _ in offered(name, each)] for each in await arrived(door, name, tool, *more, own=own)]


def offered(name: str, received: Received) -> list[tuple[str, bytes]]:
    """The tools of a request by name, and their bytes."""
    return [(each.name, each.definition) for each in CODECS[name].parse(received.body, PATH).tools]


async def arrived(
    door: Gateway, name: str, tool: str, *more: dict[str, Any], own: Any = (), **fields: Any
) -> list[Received]:
    """The requests that arrive for one of the client's, whose model wants this tool, or none."""
    door.mock.forget()
    door.mock.model = wanting(tool) if tool else lambda seen: Says(text="Done.")
    body = asking(name, [WEATHER], *more) | ({"store": False, "model": "gpt-5.4"} if name == "openai_responses" else {})
    body["tools"] = [*own, *body["tools"]]
    body |= fields
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(PATHS[name], json=body)
    assert answer.status_code == 200, answer.text
    assert door.mock.refused == []
    return [*door.mock.received]


@pytest.mark.requirement("P18")
@formats
async def test_what_was_found_comes_last_and_keeps_its_place_on_later_turns(door: Gateway, name: str) -> None:
    before, after = await sent(door, name, "unit_17")

    assert before[-1] == after[-1] == SEARCH
    assert after[: len(before) - 1] == before[:-1]
    assert after[len(before) - 1] == "unit_17"

    history = [*called(name, "unit_17"), spoken(name, "assistant", "Read."), spoken(name, "user", WEATHER)]
    again, then = await sent(door, name, "renew_loan", *history)

    assert again == after
    assert then[: len(after) - 1] == after[:-1]
    assert "renew_loan" in then[len(after) - 1 :]

    history += [*called(name, "renew_loan")]
    assert await sent(door, name, "renew_loan", *history) == [then]


@pytest.mark.requirement("P18")
@formats
async def test_the_next_request_has_the_tools_that_followed_the_search_byte_for_byte(door: Gateway, name: str) -> None:
    _, searched = await arrived(door, name, "unit_17")
    history = [*called(name, "unit_17"), spoken(name, "assistant", "Read."), spoken(name, "user", WEATHER)]
    (later,) = await arrived(door, name, "weather_forecast", *history)

    assert offered(name, later) == offered(name, searched)


SHUT: dict[str, dict[str, Any]] = {
    "openai_chat": {"tool_choice": "none"},
    "openai_responses": {"tool_choice": "none"},
    "anthropic": {"tool_choice": {"type": "none"}},
    "gemini": {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}},
}


@pytest.mark.requirement("P8", "P18")
@formats
async def test_a_turn_that_may_not_search_has_the_tools_of_those_that_may(door: Gateway, name: str) -> None:
    history = [spoken(name, "assistant", "Rain."), spoken(name, "user", WEATHER)]
    (free,) = await arrived(door, name, "weather_forecast")
    (shut,) = await arrived(door, name, "", *history, **SHUT[name])
    (forced,) = await arrived(door, name, "weather_forecast", *history, **forcing(name, "weather_forecast"))

    assert offered(name, free)[-1][0] == SEARCH
    assert offered(name, shut) == offered(name, forced) == offered(name, free)
    for choice, received in ((SHUT[name], shut), (forcing(name, "weather_forecast"), forced)):
        assert choice.items() <= received.json.items()


@formats
async def test_what_is_asked_once_and_may_not_search_has_no_search(door: Gateway, name: str) -> None:
    (forced,) = await arrived(door, name, "weather_forecast", **forcing(name, "weather_forecast"))

    assert SEARCH not in dict(offered(name, forced))


OWN: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    "openai_responses": {"type": "tool_search"},
}


@pytest.mark.requirement("P21")
@pytest.mark.parametrize("name", OWN)
async def test_beside_a_search_of_the_clients_own_none_is_offered(door: Gateway, name: str) -> None:
    (arrived,) = await sent(door, name, "weather_forecast", own=[OWN[name]])

    assert "weather_forecast" in arrived
    assert SEARCH not in arrived
