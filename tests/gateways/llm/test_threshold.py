"""Tools picked by a threshold on cosines that nothing reaches."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.catalog import Catalog
from pegboard.compose import build_routing
from pegboard.events import ModelRequestServed
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.thresholds import measured
from pegboard.settings import Settings
from pegboard.stores import MemoryEvents
from served import OpenGateway

CHAT = "/openai/v1/chat/completions"
SEMANTIC = {"profile": "semantic", "threshold": 0.7}
ANY = {"least_tools": 0, "least_tokens": 0}
NOTHING = "nothing reached 0.7; all kept"
SAID = "A threshold of 0.7 lets 9% of the needed tools through"


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    "policy",
    [{}, {"sticky": False}, {"ways": ["tools"]}, {"ways": ["whole"]}],
    ids=["default", "not sticky", "tools", "whole"],
)
async def test_where_nothing_reaches_the_threshold_the_answer_and_the_event_say_so(
    gateway_of: OpenGateway, upstream: ModelUpstream, events: MemoryEvents, policy: dict[str, Any]
) -> None:
    async with gateway_of(llm={"policy": SEMANTIC | ANY | policy}) as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat", "Which train goes to the sea?"))

    assert upstream.tools == ["alpha", "beta", "gamma", "delta"]
    assert answer.headers["x-pegboard-filter"] == "unchanged"
    assert answer.headers["x-pegboard-reason"] == NOTHING
    assert answer.headers["x-pegboard-tools"] == "4/4"
    assert [event.reason for event in events.of(ModelRequestServed)] == [NOTHING]


@pytest.mark.requirement("A9")
async def test_where_everything_reaches_it_that_is_said(gateway_of: OpenGateway) -> None:
    policy = ANY | {"profile": "semantic", "threshold": -1, "ways": ["tools"]}
    async with gateway_of(llm={"policy": policy}) as gateway:
        answer = await gateway.http.post(CHAT, json=asking("openai_chat", "alpha"))

    assert answer.headers["x-pegboard-reason"] == "everything is relevant"


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    ("llm", "warned"),
    [
        ({"policy": SEMANTIC}, True),
        ({"rules": [{"model": "gpt-*"} | SEMANTIC]}, True),
        ({"policy": {"profile": "semantic", "threshold": 0.4}}, False),
        ({"policy": {"profile": "semantic"}}, False),
        ({"policy": {"profile": "hybrid", "threshold": 0.7}}, False),
    ],
)
async def test_the_start_warns_of_a_threshold_that_the_encoder_of_the_package_does_not_reach(
    gateway_of: OpenGateway, caplog: pytest.LogCaptureFixture, llm: dict[str, Any], warned: bool
) -> None:
    async with gateway_of(llm=llm, parts={"encoder": OnnxEncoder()}):
        pass

    assert (SAID in caplog.text) == warned
    assert ("0.44 lets 65% through" in caplog.text) == warned


@pytest.mark.requirement("A9")
async def test_the_policy_of_seed_003_by_its_own_threshold_is_warned_of_too(
    gateway_of: OpenGateway, caplog: pytest.LogCaptureFixture
) -> None:
    filtering = {"selectionMode": "By Threshold"}
    legacy = {"url": "http://127.0.0.1:9", "format": "generic", "semantic_tool_filtering": filtering}
    async with gateway_of(llm={"upstreams": {"legacy": legacy}}, parts={"encoder": OnnxEncoder()}):
        pass

    assert SAID in caplog.text


@pytest.mark.requirement("A9")
def test_a_board_by_a_threshold_that_is_not_reached_warns(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pegboard"):
        build_routing(Settings(**SEMANTIC), Catalog.build([]))

    assert SAID in caplog.text


def test_what_was_measured_is_of_the_encoder_that_ships() -> None:
    assert measured().encoder == OnnxEncoder().model, "run scripts/fit_threshold.py"
    assert list(measured().recall.values()) == sorted(measured().recall.values(), reverse=True)
    assert measured().recall_at(2.0) == measured().recall[max(measured().recall)]
    assert measured().recall_at(-1.0) == measured().recall[min(measured().recall)]
