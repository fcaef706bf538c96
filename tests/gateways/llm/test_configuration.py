"""Configurations of the LLM gateway that make no sense, and requests with headers that do not."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.errors import ConfigError
from pegboard.gateways.llm.proxy.config_checks import warnings
from pegboard.gateways.llm.proxy.target import MOST_LOGGED, UnknownHeaders
from pegboard.gateways.llm.selection.policy_rules import Policies
from pegboard.settings.llm import LlmSettings, UpstreamSettings
from served import OpenGateway

HERE = "http://127.0.0.1:9"
CHAT = "/openai/v1/chat/completions"
KEY = {"hash": "sha256:" + "0" * 64}
WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a threshold that no cosine has": ({"threshold": 1.5}, ["threshold is 1.5", "less than or equal to 1"]),
    "a limit of nothing": ({"limit": 0}, ["limit is 0", "greater than or equal to 1"]),
    "a limit that is no number": ({"Limit": "many"}, ["is 'many'", "integer"]),
    "half a path": ({"toolsJSONPath": "$.["}, ["toolsJSONPath is '$.['", "not a JSONPath: expected"]),
    "a typo": ({"limitt": 5}, ["there is no 'limitt'", "perhaps 'limit'"]),
    "another mode": ({"selectionMode": "By Luck"}, ["selectionMode is 'By Luck'", "'By Rank' or 'By Threshold'"]),
    "two at once": ({"limit": 0, "treshold": 1}, ["limit is 0", "perhaps 'threshold'"]),
}


def generic(**filtering: Any) -> LlmSettings:
    return LlmSettings(
        upstreams={"legacy": UpstreamSettings(url=HERE, format="generic", semantic_tool_filtering=filtering)}
    )


@pytest.mark.requirement("A10")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_parameter_of_a_policy_is_named_with_its_value_and_what_is_allowed(wrong: str) -> None:
    given, said = WRONG[wrong]
    with pytest.raises(ConfigError) as caught:
        Policies(generic(**given))

    assert "llm.upstreams.legacy.semantic_tool_filtering" in caught.value.message
    assert all(each in caught.value.message for each in said), caught.value.message
    assert "toolsJSONPath" in caught.value.remedy
    assert "pydantic" not in str(caught.value)


@pytest.mark.requirement("A10")
@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_commands_say_what_is_wrong_and_call_it_no_defect_of_pegboard(tmp_path: Path, command: str) -> None:
    config = tmp_path / "pegboard.toml"
    config.write_text(
        f'[llm.upstreams.legacy]\nurl = "{HERE}"\nformat = "generic"\nsemantic_tool_filtering = {{ threshold = 1.5 }}\n'
    )
    folders = {f"PEGBOARD_{name}_DIR": str(tmp_path) for name in ("CACHE", "STATE")}
    ran = subprocess.run(
        [sys.executable, "-m", "pegboard", command, "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | folders | {"PEGBOARD_PORT": "0", "COLUMNS": "500"},
    )

    assert ran.returncode in (1, 2)
    assert "threshold is 1.5" in ran.stdout + ran.stderr
    assert "defect" not in ran.stdout + ran.stderr


@pytest.mark.requirement("A10")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rules": [{"upstream": "opnai", "k": 3}]}, "upstream of rule 1 of llm.rules is 'opnai'"),
        ({"rules": [{"k": 5}, {"key": "team-b", "k": 3}]}, "key of rule 2 of llm.rules is 'team-b'"),
        ({"keys": {"team": KEY | {"upstreams": ["groq", "azure"]}}}, "upstreams of llm.keys.team is ['groq', 'azure']"),
    ],
)
def test_a_rule_or_a_key_for_what_is_not_there_is_an_error_that_names_what_is(wrong: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Policies(LlmSettings(**wrong))

    assert said in caught.value.message
    assert "openai, anthropic, gemini" in caught.value.remedy or "none" in caught.value.remedy


@pytest.mark.requirement("A10")
def test_what_fits_nothing_beside_what_does_is_said_and_is_no_error() -> None:
    rules = ({"upstream": "azure-*", "k": 3}, {"upstream": "open*", "k": 5}, {"upstream": "*", "key": "", "k": 5})
    settings = LlmSettings(rules=rules, keys={"team": KEY | {"upstreams": ["openai", "groq"]}})
    Policies(settings)

    assert list(warnings(settings)) == [
        "upstream of rule 1 of llm.rules: 'azure-*' matches none of openai, anthropic, gemini.",
        "upstreams of llm.keys.team: 'groq' matches none of openai, anthropic, gemini.",
    ]


def test_rules_without_any_upstream_are_no_defect() -> None:
    Policies(LlmSettings(upstreams={}, rules=[{"k": 3}]))


@pytest.mark.requirement("A10")
@pytest.mark.parametrize(
    ("base", "asked", "sent"),
    [
        ("/v1", "/v1/chat/completions?a=b", "/v1/chat/completions?a=b"),
        ("/v1", "/chat/completions", "/v1/chat/completions"),
        ("/openai/v1/", "/v1/chat/completions", "/openai/v1/chat/completions"),
        ("/v1beta", "/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent"),
        ("/v1", "/v1beta/models", "/v1/v1beta/models"),
        ("/api", "/v1/chat/completions", "/api/v1/chat/completions"),
        ("", "/v1/chat/completions", "/v1/chat/completions"),
    ],
)
async def test_a_version_in_the_address_of_an_upstream_is_not_sent_twice(
    gateway_of: OpenGateway, upstream: ModelUpstream, base: str, asked: str, sent: str
) -> None:
    async with gateway_of(llm={"upstreams": {"local": {"url": upstream.url + base}}}) as gateway:
        answer = await gateway.http.post(f"/local{asked}", json=asking("openai_chat"))

    assert answer.status_code == 200
    assert upstream.sent[0].target == sent


@pytest.mark.requirement("A10")
async def test_the_start_says_what_becomes_of_a_version_in_an_address(
    gateway_of: OpenGateway, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "pegboard"):
        async with gateway_of(llm={"upstreams": {"local": {"url": f"{HERE}/v1"}}}):
            pass

    assert "The address of the upstream 'local' ends in /v1: paths that also begin with /v1" in caplog.text


@pytest.mark.requirement("A10")
async def test_a_header_that_means_nothing_is_named_in_the_answer_and_in_the_log_once(
    gateway_of: OpenGateway, upstream: ModelUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"x-pegboard-fliter": "off", "x-pegboard-k": "2", "x-pegboard-session": "mine"}
    async with gateway_of() as gateway:
        answers = [await gateway.http.post(CHAT, json=asking("openai_chat"), headers=headers) for _ in range(2)]
        without = await gateway.http.post(CHAT, json=asking("openai_chat"), headers={"x-pegboard-k": "2"})

    for answer in answers:
        assert answer.status_code == 200
        assert answer.headers["x-pegboard-warning"].startswith(
            "unknown: x-pegboard-fliter. Known headers are x-pegboard-k,"
        )
    assert "x-pegboard-warning" not in without.headers
    assert not any(name.startswith("x-pegboard") for sent in upstream.sent for name in sent.headers)
    assert caplog.text.count("unknown header x-pegboard-fliter") == 1


def test_clients_cannot_fill_the_log_with_names(caplog: pytest.LogCaptureFixture) -> None:
    unknown = UnknownHeaders()
    ((_, said),) = unknown.warning(f"name-{number}" for number in range(10 * MOST_LOGGED))

    assert len(caplog.records) == MOST_LOGGED
    assert len(said) < 1000
