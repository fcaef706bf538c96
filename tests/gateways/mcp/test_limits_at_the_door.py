"""Rates and budgets of callers at the MCP gateway."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from doors import Raw
from issuers import running_issuer
from pegboard.clock import SystemClock
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.stores import MemoryRates, MemoryReplicas, MemorySessions, MemorySigningKeys

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
ACCESS = {
    "ann": {"hash": hashed("anns"), "tenant": "acme"},
    "bob": {"hash": hashed("bobs"), "tenant": "acme"},
    "eve": {"hash": hashed("eves"), "tenant": "other"},
}


async def errors(url: str, token: str, times: int, **arguments: Any) -> list[str]:
    """The codes of the errors of so many calls in a row; empty for a call that passed."""
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        raw = await Raw(http, url, modern=False, headers={"authorization": f"Bearer {token}"}).begin()
        results = [await raw.result("tools/call", name="echo", arguments={"text": "hi"}) for _ in range(times)]
    return [json.loads(each["content"][0]["text"])["error"] if each.get("isError") else "" for each in results]


@pytest.mark.requirement("signing-in.rates")
async def test_a_call_beyond_the_rate_is_an_error_that_says_when_to_try_again(open_door: OpenDoor) -> None:
    rates = [{"calls": 2, "seconds": 3_600, "tools": ["scripted/echo"]}]
    async with open_door(access=ACCESS, rates=rates) as (url, _):
        assert await errors(url, "anns", 3) == ["", "", "rate_limited"]
        assert await errors(url, "bobs", 1) == [""]


@pytest.mark.requirement("signing-in.rates")
async def test_a_request_beyond_the_rate_is_answered_with_429_and_when_to_try_again(open_door: OpenDoor) -> None:
    rates = [{"calls": 2, "seconds": 3_600, "of": "requests"}]
    async with (
        open_door(access=ACCESS, rates=rates) as (url, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        answers = [await http.post(url, json=body, headers={"authorization": "Bearer anns"}) for _ in range(3)]
        refused = answers[-1]

    assert [each.status_code == 429 for each in answers] == [False, False, True]
    assert 0 < int(refused.headers["retry-after"]) <= 1_800
    assert refused.json()["jsonrpc"] == "2.0"
    assert refused.json()["error"]["data"]["error"] == "rate_limited"


async def test_a_request_that_another_process_forwards_is_counted_once(open_door: OpenDoor) -> None:
    clock = SystemClock()
    shared = {
        "sessions": MemorySessions(clock),
        "replicas": MemoryReplicas(clock),
        "rates": MemoryRates(clock),
        "signing_keys": MemorySigningKeys(),
    }
    rates = [{"calls": 20, "seconds": 3_600, "of": "requests"}]
    async with (
        open_door(access=ACCESS, rates=rates, replaced=shared) as (first, _),
        open_door(access=ACCESS, rates=rates, replaced=shared) as (owner, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        raw = await Raw(http, owner, headers={"authorization": "Bearer anns"}).begin()
        raw.url, counted = first, 2
        while (await raw.post("ping", {})).status == 200:
            counted += 1
        evading = Raw(http, owner, headers=raw.headers | {"x-pegboard-forwarded": "made-up"}, session=raw.session)
        refused = await evading.post("ping", {})

    assert counted == 20
    assert refused.status == 429


@pytest.mark.requirement("signing-in.budgets")
@pytest.mark.parametrize(
    ("budget", "of_ann", "of_bob", "of_eve"),
    [
        ({"by": "caller", "day": 0.02}, 2, 2, 2),
        ({"by": "tenant", "total": 0.03}, 3, 0, 3),
        ({"by": "all", "day": 0.03, "tools": ["*/echo"]}, 3, 0, 0),
        ({"by": "caller", "day": 0.01, "callers": ["bob"]}, 4, 1, 4),
        ({"by": "caller", "day": 0.01, "tools": ["other/*"]}, 4, 4, 4),
    ],
)
async def test_a_budget_is_each_callers_each_tenants_or_all_of_theirs(
    open_door: OpenDoor, budget: dict[str, Any], of_ann: int, of_bob: int, of_eve: int
) -> None:
    spend = {"prices": {"scripted/*": 0.01}, "budgets": [budget]}
    async with open_door(access=ACCESS, spend=spend) as (url, _):
        passed = [(await errors(url, token, 4)).count("") for token in ("anns", "bobs", "eves")]

    assert passed == [of_ann, of_bob, of_eve]


@pytest.mark.requirement("signing-in.budgets")
async def test_claims_bring_rates_and_budgets(open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.gateways.issuer.SECONDS", 60.0)  # it shares our event loop
    async with running_issuer() as issuer:
        policies = [
            {"claims": {"groups": ["dev"]}, "tools": ["*"], "budgets": [{"day": 0.02}]},
            {"claims": {"groups": ["trial"]}, "tools": ["*"], "rates": [{"calls": 1, "seconds": 3_600}]},
        ]
        table = {"url": issuer.url, "resource": issuer.resource, "policies": policies}
        async with open_door(issuer=table, spend={"prices": {"scripted/*": 0.01}}) as (url, _):
            dev = await errors(url, issuer.token(sub="dev", groups=["dev"]), 3)
            trial = await errors(url, issuer.token(sub="trial", groups=["trial"]), 2)

    assert dev == ["", "", "spend_limit_reached"]
    assert trial == ["", "rate_limited"]
