"""Over a conversation by way of `call_tool` each prompt begins with the one before it, byte for byte."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import httpx2
import pytest

from mock_providers.scripted import Says
from model_bodies import CONVERSATION, FORMATS
from model_doors import Gateway, gateway
from pegboard.gateways.llm.formats.gemini.request import either
from pegboard.gateways.llm.formats.json_spans import elements, members
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

formats = pytest.mark.parametrize("name", FORMATS)

JOBS = {
    "renew_loan": "Extend the due date of a borrowed book",
    "weather_forecast": "Weather of the coming days at a place",
    "convert_currency": "Convert an amount of money into another currency",
    "water_plants": "Open the valve of one garden bed",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(30)},
}
PATHS = {
    "openai_chat": "/openai/v1/chat/completions",
    "openai_responses": "/openai/v1/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/gemini-3-flash:generateContent",
}
ASKS = [
    ("Weather of the coming days at a place, please", "weather_forecast"),
    ("Extend the due date of a borrowed book, please", "renew_loan"),
    ("and again", "unit_7"),
    ("Convert an amount of money into another currency, please", "convert_currency"),
    ("Weather of the coming days at a place, please", "weather_forecast"),
    ("Open the valve of one garden bed, please", "water_plants"),
]
"""What the user says, and which tool is called then: once it is one that nothing was shown of."""
SCHEMA = {"type": "object", "properties": {"what": {"type": "string", "description": "größe, 1.0"}}}
BREAKPOINT = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def body(name: str, said: Sequence[Any]) -> dict[str, Any]:
    of_each = [{"name": job, "description": about, "parameters": SCHEMA} for job, about in JOBS.items()]
    match name:
        case "openai_chat":
            system = {"role": "system", "content": "Be brief."}
            return {
                "model": "m",
                "messages": [system, *said],
                "tools": [{"type": "function", "function": each} for each in of_each],
            }
        case "openai_responses":
            tools = [{"type": "web_search"}, *({"type": "function", **each} for each in of_each)]
            return {"model": "m", "instructions": "Be brief.", "input": said, "tools": tools, "store": False}
        case "anthropic":
            tools = [
                {"name": each["name"], "description": each["description"], "input_schema": SCHEMA} for each in of_each
            ]
            tools = [{"type": "web_search_20250305", "name": "web_search"}, *tools[:-1], tools[-1] | BREAKPOINT]
            return {"model": "m", "max_tokens": 9, "system": "Be brief.", "messages": said, "tools": tools}
        case _:
            tools = [{"google_search": {}}, {"function_declarations": of_each}]
            return {"contents": said, "tools": tools, "systemInstruction": {"parts": [{"text": "Be brief."}]}}


def turn(name: str, number: int, said: str, tool: str) -> tuple[list[Any], list[Any], list[Any]]:
    """What the user says, the call with its result, and the answer."""
    given = {"what": f"Zoë {number}"}
    match name:
        case "openai_chat":
            user = {"role": "user", "content": said if number % 2 else [{"type": "text", "text": said}]}
            function = {"name": tool, "arguments": json.dumps(given)}
            call = {"role": "assistant", "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}]}
            result = {"role": "tool", "tool_call_id": f"c{number}", "name": tool, "content": "done"}
            return [user], [call, result], [{"role": "assistant", "content": "So."}]
        case "openai_responses":
            user = {"role": "user", "content": said if number % 2 else [{"type": "input_text", "text": said}]}
            call = {
                "type": "function_call",
                "call_id": f"c{number}",
                "name": tool,
                "arguments": json.dumps(given, ensure_ascii=False),
            }
            result = {"type": "function_call_output", "call_id": f"c{number}", "output": "done"}
            return [user], [call, result], [{"role": "assistant", "content": "So."}]
        case "anthropic":
            user = {"role": "user", "content": said if number % 2 else [{"type": "text", "text": said}]}
            thought = {"type": "thinking", "thinking": "Hm.", "signature": "only the provider's"}
            call = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
            result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "done"}
            called = [{"role": "assistant", "content": [thought, call]}, {"role": "user", "content": [result]}]
            return [user], called, [{"role": "assistant", "content": "So."}]
        case _:
            call = {"functionCall": {"name": tool, "args": given}, "thoughtSignature": "only the provider's"}
            result = {"functionResponse": {"name": tool, "response": {"result": "done"}}}
            called = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
            return (
                [{"role": "user", "parts": [{"text": said}]}],
                called,
                [{"role": "model", "parts": [{"text": "So."}]}],
            )


def requests(name: str) -> list[dict[str, Any]]:
    """Two for each of the user's messages."""
    said: list[Any] = []
    found = []
    for number, (ask, tool) in enumerate(ASKS):
        user, called, answer = turn(name, number, ask, tool)
        said = [*said, *user]
        found.append(body(name, said))
        said = [*said, *called]
        found.append(body(name, said))
        said = [*said, *answer]
    return found


@asynccontextmanager
async def opened(encoder: FakeEncoder | None = None, **policy: Any) -> AsyncIterator[Gateway]:
    parts = {"encoder": encoder or FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with gateway(parts=parts, policy={"k": 1, "ways": ["call_tool"]} | policy) as found:
        found.mock.model = lambda _: Says(text="So.")
        yield found


async def sent(door: Gateway, name: str, asked: dict[str, Any]) -> bytes:
    """What arrives at the provider."""
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(PATHS[name], json=asked)
    assert answer.status_code == 200, answer.text
    assert door.mock.refused == []
    assert door.said["x-pegboard-cache"].startswith("call_tool; ")
    return door.mock.last.body


def prompt(name: str, arrived: bytes) -> list[bytes]:
    """The tools, the system text, and each message, as they were written."""
    fields = members(arrived)
    before = [key for key in ("tools", "instructions", "system", either(fields, "systemInstruction")) if key in fields]
    said = elements(arrived, fields[CONVERSATION[name]].value)
    return [*(arrived[slice(*fields[key].value)] for key in before), *(arrived[slice(*span)] for span in said)]


@pytest.mark.requirement("P18", "P19")
@formats
async def test_each_prompt_begins_with_the_one_before_whoever_sends_it_and_after_a_restart(name: str) -> None:
    asked = requests(name)
    async with opened() as one, opened() as other:
        served = (one, one, other)
        arrived = [await sent(served[number % 3], name, each) for number, each in enumerate(asked)]
    async with opened() as restarted:
        again = [await sent(restarted, name, each) for each in (asked[-1], asked[0], asked[5])]

    prompts = [prompt(name, each) for each in arrived]
    assert len(prompts) >= 8
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
    assert again == [arrived[-1], arrived[0], arrived[5]]


@formats
async def test_definitions_are_shown_once_where_they_are_first_wanted_and_what_was_called_unseen_after_that(
    name: str,
) -> None:
    async with opened(always=["unit_3"]) as door:
        for each in requests(name)[:-1]:
            await sent(door, name, each)
        last = json.loads(door.mock.last.body)

    said = [message for message in last[CONVERSATION[name]] if message.get("role") == "user"]
    texts = [text for message in said if "<tools>" in (text := json.dumps(message, ensure_ascii=False))]
    shown = [{tool for tool in JOBS if f'{{\\"name\\":\\"{tool}\\"' in text} for text in texts]
    assert shown[:2] == [{"weather_forecast", "unit_3"}, {"renew_loan"}]
    assert {"convert_currency", "unit_7"} <= set.union(*shown)
    assert sum(map(len, shown)) == len(set.union(*shown))
    assert all(text.index("<tools>") < text.index("please") for text in texts if "please" in text)


@formats
async def test_hosted_tools_stay_and_a_breakpoint_of_the_others_stays_with_ours(name: str) -> None:
    asked = requests(name)[3]
    async with opened() as door:
        arrived = json.loads(await sent(door, name, asked))
        told = door.said

    tools = arrived["tools"]
    assert tools[:-1] == (asked["tools"][:1] if name != "openai_chat" else [])
    assert (tools[-1].get("cache_control") == BREAKPOINT["cache_control"]) is (name == "anthropic")
    assert {key: value for key, value in arrived.items() if key not in ("tools", CONVERSATION[name])} == {
        key: value for key, value in asked.items() if key not in ("tools", CONVERSATION[name])
    }
    kept, offered = map(int, told["x-pegboard-tools"].split("/"))
    after, before = map(int, told["x-pegboard-tokens"].split("/"))
    hosted = 0 if name == "openai_chat" else 1
    assert (kept, offered) == (2 + hosted, len(JOBS) + hosted)
    assert 0 < after < before


async def test_all_conversations_with_the_same_tools_begin_alike() -> None:
    async with opened() as door:
        other = body("anthropic", [{"role": "user", "content": "Something else entirely"}])
        asked = [requests("anthropic")[0], requests("anthropic")[7], other]
        arrived = [await sent(door, "anthropic", each) for each in asked]

    assert len({prompt("anthropic", each)[0] for each in arrived}) == 1


async def test_results_come_before_the_definitions_in_a_message_that_has_both() -> None:
    result = {"type": "tool_result", "tool_use_id": "t0", "content": "done"}
    user, called, _ = turn("anthropic", 0, *ASKS[0])
    said = [*user, called[0], {"role": "user", "content": [result, {"type": "text", "text": ASKS[1][0]}]}]
    async with opened() as door:
        arrived = json.loads(await sent(door, "anthropic", body("anthropic", said)))

    kinds = [(block["type"], "<tools>" in block.get("text", "")) for block in arrived["messages"][2]["content"]]
    assert kinds == [("tool_result", False), ("text", True), ("text", False)]


async def test_what_is_counted_is_what_would_be_sent() -> None:
    asked = requests("anthropic")[4]
    async with opened() as door:
        arrived = await sent(door, "anthropic", asked)
        door.mock.model = None
        async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
            answer = await client.post(f"{PATHS['anthropic']}/count_tokens", json=asked)

        assert answer.json()["input_tokens"] > 0
        assert door.mock.last.body == arrived


async def test_of_a_long_conversation_nothing_is_asked_twice_and_nothing_moves() -> None:
    encoder = FakeEncoder()
    said: list[Any] = []
    prompts = []
    async with opened(encoder) as door:
        for number in range(90):
            said = [*said, {"role": "user", "content": f"Read sensor {number % 30} of engine {number % 30}"}]
            if number % 30 == 29:
                prompts.append(prompt("openai_chat", await sent(door, "openai_chat", body("openai_chat", said))))
            said = [*said, {"role": "assistant", "content": "So."}]

    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
    asked = [text for text in encoder.encoded if text.startswith("Read sensor") and "engine" in text]
    assert len(asked) < 120
