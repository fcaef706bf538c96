"""Of any valid request, over HTTP: the strict provider never refuses what it would have taken, and bytes are kept."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import model_bodies
import more_provider_bodies
from model_bodies import PATH
from model_doors import Gateway, gateway_beside
from model_requests import BODIES, written_requests
from pegboard.gateways.llm.formats.json_spans import members
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from strict_upstreams import PROBLEMS

PATHS = {
    "openai_chat": ("openai", "/v1/chat/completions"),
    "openai_responses": ("openai", "/v1/responses"),
    "anthropic": ("anthropic", "/v1/messages"),
    "gemini": ("gemini", PATH),
    **{name: (name, path) for name, (_, path) in more_provider_bodies.CODECS.items()},
}
CODECS = {**model_bodies.CODECS, **{name: codec for name, (codec, _) in more_provider_bodies.CODECS.items()}}
RULES = [
    {"upstream": "*-off", "filter": False},
    {"upstream": "*-picky", "threshold": 0.99, "when_none": "none"},
]
MENDED = {
    "tools",
    "functions",
    "tool_choice",
    "function_call",
    "parallel_tool_calls",
    "toolConfig",
    "tool_config",
    "strict_tools",
}
"""The fields that may change with the tools."""

formats = pytest.mark.parametrize("name", CODECS)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose encoder costs nothing, so that many tools can be new to it."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PEGBOARD_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
        with gateway_beside(parts=parts, policy={"profile": "semantic", "k": 2}, rules=RULES) as found:
            yield found


@pytest.fixture(scope="module")
def client(quick: Gateway) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=quick.url, trust_env=False) as found:
        yield found


def sent(client: httpx2.Client, quick: Gateway, name: str, policy: str, body: bytes) -> tuple[bytes, httpx2.Headers]:
    """What arrives of a body that the provider takes as it is, and takes as it comes; and the answer's headers."""
    assert PROBLEMS[name](json.loads(body)) == []
    upstream, path = PATHS[name]
    answer = client.post(f"/{upstream}{policy}{path}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    return quick.mock.received.pop().body, answer.headers


@pytest.mark.requirement("P9", "P10", "P12", "P14", "P18", "P20", "P21", "P22", "P23", "P26")
@formats
def test_what_was_valid_arrives_valid_with_kept_tools_and_other_fields_byte_for_byte(
    quick: Gateway, client: httpx2.Client, name: str
) -> None:
    @given(body=written_requests(BODIES[name]), policy=st.sampled_from(["", "-picky"]))
    def holds(body: bytes, policy: str) -> None:
        out, headers = sent(client, quick, name, policy, body)

        before, after = CODECS[name].parse(body, PATH), CODECS[name].parse(out, PATH)
        kept, offered = map(int, headers["x-pegboard-tools"].split("/"))
        assert offered == len(before.tools)
        assert headers["x-pegboard-filter"] == ("unchanged" if kept == offered else "filtered")
        if kept == offered:
            assert out == body
        remaining = iter([tool.definition for tool in before.tools])
        for tool in after.tools:
            if tool.breakpoint is None and tool.name:
                assert tool.definition in remaining, "kept tools are byte for byte what they were, and in their order"
        assert others(out) == others(body)

    holds()


@pytest.mark.requirement("P23")
@formats
def test_with_filtering_off_the_body_arrives_byte_for_byte(quick: Gateway, client: httpx2.Client, name: str) -> None:
    @given(body=written_requests(BODIES[name]))
    def holds(body: bytes) -> None:
        out, headers = sent(client, quick, name, "-off", body)

        assert out == body
        assert headers["x-pegboard-filter"] == "off"

    holds()


def others(text: bytes) -> list[tuple[str, bytes]]:
    """The fields that no tool is in and that depend on none, as they are written."""
    return [(key, text[each.start : each.end]) for key, each in members(text).items() if key not in MENDED]
