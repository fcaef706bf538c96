"""/readyz and /metrics of a gateway that serves."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from model_bodies import asking
from model_upstream import ModelUpstream
from pegboard.activity_entries import ActivityEntry
from pegboard.errors import EncoderError, StoreError
from pegboard.model import Floats
from pegboard.stores import MemoryActivity
from pegboard.testing import FakeEncoder
from processes import until
from served import OpenGateway

CHAT = "/openai/v1/chat/completions"


class Loading(FakeEncoder):
    """Does not answer before it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded = asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        await self.loaded.wait()
        return await super().encode(texts)


class Broken(FakeEncoder):
    async def encode(self, texts: Sequence[str]) -> Floats:
        raise EncoderError("The model is not there.")


def sample(metrics: str, name: str, **labels: str) -> float:
    """The value of the one sample of this name with these labels, and any others."""
    found = [
        float(value)
        for said, value in re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", metrics, re.MULTILINE)
        if labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', said)).items()
    ]
    assert len(found) <= 1, found
    return found[0] if found else 0.0


async def test_a_gateway_is_ready_once_its_encoder_is_loaded(gateway_of: OpenGateway) -> None:
    encoder = Loading()
    async with gateway_of(parts={"encoder": encoder}) as gateway:
        before = await gateway.http.get("/readyz")
        encoder.loaded.set()
        await until(lambda: gateway.server.readiness.report()[0])
        after = await gateway.http.get("/readyz")
        health = await gateway.http.get("/healthz")

    assert (before.status_code, before.json()["reasons"]) == (503, ["The encoder is being loaded."])
    assert (after.status_code, after.json()) == (200, {"status": "ready", "reasons": [], "degraded": []})
    assert health.json()["status"] == "ok"


async def test_a_gateway_whose_encoder_does_not_work_is_not_ready(gateway_of: OpenGateway) -> None:
    async with gateway_of(parts={"encoder": Broken()}) as gateway:
        await until(lambda: "does not work" in str(gateway.server.readiness.report()))
        assert (await gateway.http.get("/readyz")).status_code == 503


async def test_a_gateway_whose_encoder_has_a_fallback_is_ready_without_it(gateway_of: OpenGateway) -> None:
    async with gateway_of(parts={"encoder": Broken(), "fallback": FakeEncoder()}) as gateway:
        await until(lambda: "does not work" in str(gateway.server.readiness.report()[1]["degraded"]))
        await until(lambda: gateway.server.readiness.report()[0])
        answer = await gateway.http.get("/readyz")

    assert (answer.status_code, answer.json()["degraded"]) == (200, ["The encoder does not work."])


async def test_without_models_nothing_waits_for_the_encoder(gateway_of: OpenGateway) -> None:
    async with gateway_of(llm={"enabled": False}, parts={"encoder": Loading()}) as gateway:
        assert (await gateway.http.get("/readyz")).status_code == 200


async def test_a_store_that_is_down_is_said_and_is_no_reason_to_go(gateway_of: OpenGateway) -> None:
    async with gateway_of(state="redis://127.0.0.1:1/0") as gateway:
        await until(lambda: gateway.server.readiness.report()[0])
        answer = await gateway.http.get("/readyz")

    assert (answer.status_code, answer.json()["degraded"]) == (200, ["The state store does not answer."])


class Full(MemoryActivity):
    """A store of activity that takes nothing until the disk is ``emptied``."""

    emptied = False

    async def put(self, entries: Sequence[ActivityEntry], *, known: Collection[str] = ()) -> None:
        if not self.emptied:
            raise StoreError("The disk is full.", remedy="Empty it.")
        await super().put(entries, known=known)


async def test_activity_that_cannot_be_kept_is_said_until_it_can(gateway_of: OpenGateway) -> None:
    store = Full()
    async with gateway_of(parts={"activity": store}) as gateway:
        await gateway.http.post(CHAT, json=asking("openai_chat"))
        await until(lambda: "Activity cannot be kept" in str(gateway.server.readiness.report()[1]["degraded"]))
        answer = await gateway.http.get("/readyz")
        store.emptied = True
        await until(lambda: gateway.server.readiness.report()[1]["degraded"] == [])

    assert answer.status_code in (200, 503), "the encoder may still be loaded"
    assert answer.json()["degraded"] == ["Activity cannot be kept, and is tried again."]


async def test_servers_that_do_not_work_are_named_and_are_no_reason_to_go(gateway_of: OpenGateway) -> None:
    broken = {"broken": {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}}
    async with gateway_of(servers=broken, llm={"enabled": False}) as gateway:
        await until(lambda: gateway.server.readiness.report()[1]["degraded"] != [])
        answer = await gateway.http.get("/readyz")

    assert (answer.status_code, answer.json()["degraded"]) == (200, ["These servers do not work: broken."])


async def test_what_became_of_model_requests_is_counted(gateway_of: OpenGateway, upstream: ModelUpstream) -> None:
    policy = {"profile": "semantic", "k": 1, "least_tools": 0, "least_tokens": 0, "way_back": False}
    async with gateway_of(llm={"policy": policy}) as gateway:
        body = asking("openai_chat", "Call alpha", model="some-model")
        await gateway.http.post(CHAT, json=body)
        await gateway.http.post(CHAT, content=b"{no json")
        upstream.mood = "error"
        await gateway.http.get("/openai/v1/models")
        metrics = (await gateway.http.get("/metrics")).text

    requests = "pegboard_model_requests_total"
    assert sample(metrics, requests, upstream="openai", format="openai", outcome="filtered", status="200") == 1
    assert sample(metrics, requests, outcome="failed", status="200") == 1
    assert sample(metrics, requests, outcome="passed", status="529") == 1
    assert sample(metrics, "pegboard_filter_failures_total", reason="request_not_understood") == 1
    assert sample(metrics, "pegboard_tools_offered_total") == 4
    assert sample(metrics, "pegboard_tools_kept_total") == 1
    assert sample(metrics, "pegboard_tokens_saved_total") > 0
    assert sample(metrics, "pegboard_filter_seconds_count") == 2
    assert sample(metrics, "pegboard_request_seconds_count", upstream="openai") == 3
    assert sample(metrics, "pegboard_route_seconds_count", profile="semantic") == 1
    assert "some-model" not in metrics


async def test_requests_that_are_refused_for_their_key_are_counted(gateway_of: OpenGateway) -> None:
    keys = {"team": {"hash": f"sha256:{'0' * 64}"}}
    async with gateway_of(llm={"keys": keys}) as gateway:
        await gateway.http.post(CHAT, json=asking("openai_chat"))
        metrics = (await gateway.http.get("/metrics")).text

    assert sample(metrics, "pegboard_model_requests_total", outcome="passed", status="401") == 1


async def test_metrics_can_be_switched_off(gateway_of: OpenGateway) -> None:
    async with gateway_of(metrics=False) as gateway:
        answer = await gateway.http.get("/metrics")

    assert answer.status_code == 404
    assert "metrics = true" in answer.json()["remedy"]


async def test_those_who_ask_for_open_metrics_get_them(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        answer = await gateway.http.get("/metrics", headers={"accept": "application/openmetrics-text"})

    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")


@pytest.mark.parametrize("path", ["/metrics", "/readyz", "/healthz"])
async def test_a_page_that_rebinds_its_name_is_told_nothing(gateway_of: OpenGateway, path: str) -> None:
    async with gateway_of() as gateway:
        by_host = await gateway.http.get(path, headers={"host": "evil.example"})
        by_origin = await gateway.http.get(path, headers={"origin": "https://evil.example"})

    assert (by_host.status_code, by_origin.status_code) == (421, 403)


@pytest.mark.requirement("D13")
async def test_a_damaged_state_file_is_said_and_requests_are_served_all_the_same(
    gateway_of: OpenGateway, tmp_path: Path
) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"this is no database" * 1000)
    async with gateway_of() as gateway:
        await until(lambda: gateway.server.readiness.report()[0])
        answer = await gateway.http.get("/readyz")

    assert answer.status_code == 200
    assert answer.json()["degraded"] == ["The file state.sqlite cannot be used: file is not a database."]
