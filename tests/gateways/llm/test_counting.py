"""Who asks how many tokens a request has is told of the tools that it would be sent with, and nothing is remembered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import pytest

from back_office import JOBS, LOAN, PATHS, WEATHER, asking
from model_bodies import CODECS, FORMATS, PATH
from model_doors import Gateway, gateway
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

COUNTS: Mapping[str, str] = {
    "openai_responses": "/openai/v1/responses/input_tokens",
    "anthropic": "/anthropic/v1/messages/count_tokens",
    "gemini": "/gemini/v1beta/models/gemini-3-flash:countTokens",
}
counted = pytest.mark.parametrize("name", COUNTS)


@pytest.fixture(params=["tools", "call_tool"])
async def door(request: pytest.FixtureRequest) -> AsyncIterator[Gateway]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    policy = {"k": 1, "ways": [request.param], "way_back": True}
    async with gateway(parts=parts, policy=policy) as found:
        yield found


def held(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """As Gemini wants a whole request to be counted."""
    return {"generateContentRequest": {"model": "models/gemini-3-flash", **body}} if name == "gemini" else body


async def arrived(door: Gateway, path: str, body: dict[str, Any]) -> Any:
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(path, json=body | ({"store": False} if "responses" in path else {}))
    assert answer.status_code == 200, answer.text
    found = door.mock.last.json
    return found.get("generateContentRequest", found)


@pytest.mark.requirement("A11")
@counted
async def test_the_same_tools_are_counted_as_are_sent(door: Gateway, name: str) -> None:
    for said in ([WEATHER], [WEATHER, LOAN]):
        counted = await arrived(door, COUNTS[name], held(name, asking(name, said)))
        sent = await arrived(door, PATHS[name], asking(name, said))

        assert counted["tools"] == sent["tools"]
        assert 0 < len(CODECS[name].parse(json.dumps(counted).encode(), PATH).tools) < len(JOBS)


@pytest.mark.requirement("A11")
@counted
async def test_a_count_is_no_request_of_its_conversation(door: Gateway, name: str) -> None:
    await arrived(door, COUNTS[name], held(name, asking(name, [LOAN])))
    await arrived(door, PATHS[name], asking(name, [LOAN]))

    assert not door.said["x-pegboard-cache"].startswith("kept")


def test_every_format_that_can_count_is_known() -> None:
    assert COUNTS.keys() == set(FORMATS) - {"openai_chat"}
