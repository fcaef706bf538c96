"""Where all tools are in the provider's cache: they stay, and a word says which of them may be called (OpenAI)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

import httpx2
import pytest

from model_bodies import CODECS, FORMATS, NAMES, asking, forcing, function, parsed
from model_doors import Gateway, gateway
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.formats.json_spans import members
from pegboard.gateways.llm.formats.registry import takes_allowed_tools
from pegboard.gateways.llm.formats.tool_choice import may_be_narrowed
from pegboard.settings.llm import UpstreamSettings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from processes import until
from strict_upstreams import PROBLEMS

OPENAI = ("openai_chat", "openai_responses")
WORD = {
    "openai_chat": {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "beta"}}]},
    },
    "openai_responses": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "beta"}],
    },
}
PATHS = {"openai_chat": "/openai/v1/chat/completions", "openai_responses": "/openai/v1/responses"}
JOBS = {
    "renew_loan": "Extend the due date of a borrowed book",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(40)},
}
SYSTEM = "You run the back office of a library, and of the garden that surrounds it. " * 120

openai = pytest.mark.parametrize("name", OPENAI)


def narrowed(name: str, body: dict[str, Any], *kept: int) -> Any:
    request = parsed(name, body)
    found = CODECS[name].narrow(request, kept)
    return None if found is None else json.loads(found)


@openai
@pytest.mark.parametrize("said", [{}, {"tool_choice": "auto"}, {"tool_choice": None}, {"stream": True}])
def test_the_tools_stay_and_those_that_may_be_called_are_named(name: str, said: dict[str, Any]) -> None:
    body = asking(name, **said)

    assert narrowed(name, body, 1) == body | {"tool_choice": WORD[name]}


@pytest.mark.requirement("P9")
@openai
def test_a_call_that_is_required_stays_required(name: str) -> None:
    body = asking(name, tool_choice="required")

    out = narrowed(name, body, 1, 2)

    assert out["tool_choice"].get("allowed_tools", out["tool_choice"])["mode"] == "required"
    assert PROBLEMS[name](out) == []


@pytest.mark.requirement("P23")
@openai
def test_every_other_byte_is_kept(name: str) -> None:
    body = json.dumps(asking(name, n=2**60, tool_choice="auto", temperature=0.10), indent=3).encode()

    found = CODECS[name].narrow(CODECS[name].parse(body, ""), [0, 3])

    assert found is not None
    before, after = members(body), members(found)
    assert [body[slice(*each.value)] for key, each in before.items() if key != "tool_choice"] == [
        found[slice(*each.value)] for key, each in after.items() if key != "tool_choice"
    ]


@openai
@pytest.mark.parametrize("kind", ["none", "forced", "allowed"])
def test_a_word_on_calling_tools_that_is_there_already_is_left_to_itself(name: str, kind: str) -> None:
    said = {"none": {"tool_choice": "none"}, "forced": forcing(name, "beta"), "allowed": {"tool_choice": WORD[name]}}

    assert not may_be_narrowed(parsed(name, asking(name, **said[kind])), [1])


@openai
def test_tools_that_are_no_functions_cannot_be_named_in_it(name: str) -> None:
    custom = (
        {"type": "custom", "custom": {"name": "free"}} if name == "openai_chat" else {"type": "custom", "name": "free"}
    )
    body = asking(name)
    body["tools"] += [custom, {"type": "web_search"}] if name == "openai_responses" else [custom]

    assert narrowed(name, body, 0, len(NAMES)) is None
    if name == "openai_responses":
        assert not may_be_narrowed(parsed(name, body), [0, len(NAMES) + 1])


def test_functions_of_old_have_no_such_word() -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}], "functions": [{"name": "alpha"}, {"name": "beta"}]}

    assert narrowed("openai_chat", body, 1) is None


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in OPENAI])
def test_other_formats_have_none(name: str) -> None:
    assert narrowed(name, asking(name), 1) is None


@pytest.mark.parametrize(
    ("url", "takes"),
    [("https://api.openai.com", True), ("https://api.openai.com/v1", True), ("http://127.0.0.1:8000", False)],
)
def test_only_openai_itself_is_known_to_take_it(url: str, takes: bool) -> None:
    assert takes_allowed_tools(UpstreamSettings(url=url)) is takes


def talk(name: str, *said: str) -> dict[str, Any]:
    answer = {"role": "assistant", "content": "Done."}
    messages = [each for text in said for each in ({"role": "user", "content": text}, answer)][:-1]
    if name == "openai_chat":
        functions = [function(job, description=said) for job, said in JOBS.items()]
        return {"model": "gpt-6.1", "messages": [{"role": "system", "content": SYSTEM}, *messages], "tools": functions}
    flat = [{"type": "function", "name": job, "description": said} for job, said in JOBS.items()]
    return {"model": "gpt-6.1", "instructions": SYSTEM, "input": messages, "tools": flat}


@asynccontextmanager
async def opened(**policy: Any) -> AsyncIterator[Gateway]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    by_threshold = {"profile": "semantic", "threshold": 0.7}
    async with gateway(parts=parts, policy=by_threshold | policy) as found:
        yield found


async def second_body(door: Gateway, name: str) -> Any:
    """What arrives of a request that wants one tool, after one that none was relevant to: all were sent."""
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        for said in (["zebra"], ["zebra", f"renew_loan: {JOBS['renew_loan']}"]):
            answer = await client.post(PATHS[name], json=talk(name, *said))
            assert answer.status_code == 200, answer.text
    return door.mock.last.json


@pytest.mark.requirement("P19")
@openai
async def test_where_all_tools_are_cached_they_stay_and_the_relevant_ones_may_be_called(name: str) -> None:
    async with opened(allowed_tools=True) as door:
        body = await second_body(door, name)

        assert len(body["tools"]) == len(JOBS)
        assert [tool.get("function", tool)["name"] for tool in allowed(body)] == ["renew_loan"]
        assert door.said["x-pegboard-filter"] == "filtered"
        assert door.said["x-pegboard-tools"] == f"1/{len(JOBS)}"
        assert "some are allowed" in door.said["x-pegboard-cache"]
        after, before = door.said["x-pegboard-tokens"].split("/")
        assert after == before
        await until(lambda: len(door.events.of(ModelRequestServed)) == 2)
        assert [asdict(event)["narrowed"] for event in door.events.of(ModelRequestServed)] == [False, True]


@openai
async def test_an_upstream_that_is_not_known_to_take_the_word_does_not_get_it(name: str) -> None:
    async with opened() as door:
        body = await second_body(door, name)

        assert "tool_choice" not in body


def allowed(body: Any) -> Any:
    choice = body["tool_choice"]
    return choice.get("allowed_tools", choice)["tools"]
