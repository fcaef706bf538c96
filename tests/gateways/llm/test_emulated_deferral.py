"""`ways = ["defer"]` where the provider has no search for deferred tools: another way stands in for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from back_office import JOBS, MONEY, PATHS, WEATHER, asking
from mock_providers.scripted import Calls, Says, Seen
from model_bodies import CODECS, PATH, called, forcing
from model_doors import Gateway, gateway
from pegboard.events import ModelRequestServed
from pegboard.prompt_cache import deferral_support
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from processes import until

NEEDED = "unit_17"
INSTEAD = "; in place of defer: this model's API has no search for deferred tools"
LISTED = [{"type": "function", "function": {"name": each}} for each in [*JOBS][:20]]
CASES = {
    "chat": ("openai_chat", "gpt-5.4", "call_tool"),
    "chat, a local model": ("openai_chat", "llama-4-scout", "search_tools"),
    "responses": ("openai_responses", "gpt-5", "call_tool"),
    "messages": ("anthropic", "claude-opus-4-1", "call_tool"),
    "gemini": ("gemini", "gemini-2.5-pro", "call_tool"),
    "gemini, an old model": ("gemini", "gemini-1.5-pro", "search_tools"),
}


@pytest.fixture
async def door() -> AsyncIterator[Gateway]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with gateway(parts=parts, policy={"k": 1, "ways": ["defer"]}) as found:
        found.mock.model = model
        yield found


def model(seen: Seen) -> Says:
    """Calls the tool that it needs in whatever way it was given."""
    if NEEDED in seen.answered or "call_tool" in seen.answered:
        return Says(text="Done.")
    if NEEDED in seen.tools:
        return Says(calls=[Calls(tool=NEEDED)])
    if "call_tool" in seen.tools:
        return Says(calls=[Calls(tool="call_tool", arguments={"name": NEEDED, "arguments": {"what": "it"}})])
    if "search_tools" in seen.tools:
        return Says(calls=[Calls(tool="search_tools", arguments={"query": JOBS[NEEDED]})])
    return Says(text="I have no tool for that.")


async def sent(door: Gateway, name: str, model_name: str, body: dict[str, Any]) -> list[list[str]]:
    """The tools of each request that this one led to."""
    before, path = len(door.mock.received), PATHS[name]
    if name == "gemini":
        path = f"/gemini/v1beta/models/{model_name}:generateContent"
    else:
        body = body | {"model": model_name}
    if name == "openai_responses":
        body = body | {"store": False}
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert door.mock.refused == []
    return [[tool.name for tool in CODECS[name].parse(each.body, PATH).tools] for each in door.mock.received[before:]]


async def served(door: Gateway) -> ModelRequestServed:
    """The event of the only answer, which is told right after it."""
    await until(lambda: bool(door.events.of(ModelRequestServed)))
    (event,) = door.events.of(ModelRequestServed)
    return event


@pytest.mark.requirement("llm.emulated-deferral")
@pytest.mark.parametrize("case", CASES)
async def test_a_tool_that_was_not_shown_is_called_all_the_same(door: Gateway, case: str) -> None:
    name, model_name, way = CASES[case]
    arrived = await sent(door, name, model_name, asking(name, [WEATHER]))

    assert deferral_support(name, model_name).emulated == way
    assert (await served(door)).called == (NEEDED,)
    assert all(len(tools) < len(JOBS) / 2 for tools in arrived)
    if way == "call_tool":
        assert arrived == [["call_tool"]]
    else:
        assert [tools[-1] for tools in arrived] == ["search_tools"] * 2
        assert arrived[1][: len(arrived[0]) - 1] == arrived[0][:-1]
        assert NEEDED in arrived[1][len(arrived[0]) - 1 : -1]


@pytest.mark.requirement("llm.emulated-deferral")
@pytest.mark.parametrize("case", CASES)
async def test_it_is_said_in_the_header_and_in_the_event(door: Gateway, case: str) -> None:
    name, model_name, way = CASES[case]
    await sent(door, name, model_name, asking(name, [WEATHER]))

    assert door.said["x-pegboard-cache"].endswith(INSTEAD)
    assert door.said["x-pegboard-cache"].startswith("call_tool; " if way == "call_tool" else "first; ")
    assert f"; in place of defer: {(await served(door)).instead_of_defer}" == INSTEAD


@pytest.mark.requirement("llm.emulated-deferral")
async def test_what_a_search_found_stays_at_the_end_of_the_list(door: Gateway) -> None:
    name, model_name, _ = CASES["chat, a local model"]
    (_, found) = await sent(door, name, model_name, asking(name, [WEATHER]))
    (step,) = await sent(door, name, model_name, asking(name, [WEATHER], *called(name, NEEDED)))

    assert step == found


@pytest.mark.requirement("llm.emulated-deferral")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("number", [1, 9])
async def test_few_tools_arrive_as_they_came(door: Gateway, case: str, number: int) -> None:
    name, model_name, _ = CASES[case]
    body = asking(name, [MONEY])
    if name == "gemini":
        body["tools"][0]["functionDeclarations"] = body["tools"][0]["functionDeclarations"][:number]
    else:
        body["tools"] = body["tools"][:number]

    (arrived,) = await sent(door, name, model_name, body)

    assert arrived == [*JOBS][:number]


@pytest.mark.requirement("llm.emulated-deferral")
@pytest.mark.parametrize(
    "more",
    [
        {"n": 2},
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": LISTED}}},
    ],
    ids=["several answers", "a list of allowed tools"],
)
@pytest.mark.parametrize("case", ["chat", "chat, a local model"])
async def test_where_the_model_could_not_reach_the_others_all_tools_arrive(
    door: Gateway, case: str, more: dict[str, Any]
) -> None:
    name, model_name, _ = CASES[case]
    (arrived,) = await sent(door, name, model_name, asking(name, [WEATHER]) | more)

    assert set(arrived) >= {each["function"]["name"] for each in LISTED}


@pytest.mark.requirement("llm.emulated-deferral")
@pytest.mark.parametrize("case", CASES)
async def test_a_forced_tool_is_there(door: Gateway, case: str) -> None:
    name, model_name, _ = CASES[case]
    (arrived,) = await sent(door, name, model_name, asking(name, [WEATHER]) | forcing(name, NEEDED))

    assert NEEDED in arrived
