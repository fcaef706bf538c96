"""Every request to a model in the audit log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from model_bodies import asking
from pegboard.clock import SystemClock
from pegboard.gateways.access_keys import hashed, new_key
from pegboard.stores import MemoryAudit
from pegboard.telemetry.audit_log import AuditLog
from served import OpenGateway

TEAM = new_key()
SEMANTIC = {"profile": "semantic", "k": 3, "least_tools": 0, "least_tokens": 0}
KEYS = {"team": {"hash": hashed(TEAM), "upstreams": ["openai"], "tenant": "acme", **SEMANTIC}}
SECRET = "what the user asked"


@pytest.mark.requirement("signing-in.audit-log")
async def test_each_request_is_one_line_with_its_caller_model_and_outcome(gateway_of: OpenGateway) -> None:
    store = MemoryAudit()
    log = AuditLog([store], clock=SystemClock(), values=True)
    async with gateway_of(llm={"keys": KEYS}, parts={"audit": log}) as gateway:
        shown = {"authorization": f"Bearer {TEAM}"}
        body = asking("openai_chat", SECRET, model="gpt-9")
        await gateway.http.post("/openai/v1/chat/completions", json=body, headers=shown)
        await gateway.http.post("/openai/v1/chat/completions", json=body)
        await gateway.http.post("/anthropic/v1/messages", json=asking("anthropic"), headers=shown)
    await log.close()

    lines: list[dict[str, Any]] = [json.loads(line) async for line in store.read()]
    assert [(line.get("caller"), line["server"], line["outcome"], line.get("reason")) for line in lines] == [
        ("team", "openai", "ok", None),
        (None, "openai", "refused", "not_allowed"),
        (None, "anthropic", "refused", "not_allowed"),
    ]
    assert (lines[0]["door"], lines[0]["event"], lines[0]["tenant"]) == ("llm", "request", "acme")
    assert lines[0]["model"] == "gpt-9"
    assert SECRET not in json.dumps(lines)
    assert TEAM not in json.dumps(lines)


@pytest.mark.requirement("signing-in.rates")
@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/openai/v1/chat/completions", "openai_chat", "rate_limit"),
        ("/anthropic/v1/messages", "anthropic", "rate_limit_error"),
        ("/gemini/v1beta/models/gemini-9:generateContent", "gemini", "RESOURCE_EXHAUSTED"),
    ],
)
async def test_a_request_beyond_the_rate_of_a_key_is_answered_as_the_provider_would(
    gateway_of: OpenGateway, path: str, name: str, kind: str
) -> None:
    rates = [{"calls": 1, "seconds": 3_600, "of": "requests"}]
    key = {"team": {"hash": hashed(TEAM)}}
    async with gateway_of(llm={"keys": key}, rates=rates) as gateway:
        shown = {"x-pegboard-key": TEAM}
        first, second = [await gateway.http.post(path, json=asking(name), headers=shown) for _ in range(2)]

    assert first.status_code == 200
    assert second.status_code == 429
    assert 0 < int(second.headers["retry-after"]) <= 3_600
    assert kind in second.text
