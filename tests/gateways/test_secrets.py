"""Secrets and the text of requests stay out of everything that is kept or shown, whatever goes wrong (M30)."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import httpx2
import pytest

from model_bodies import SIZED, asking
from model_upstream import ModelUpstream
from pegboard.apps.cli.stderr_log import JsonFormatter
from pegboard.events import Event, ModelRequestServed
from pegboard.gateways.access_keys import hashed
from pegboard.stores import MemoryEvents
from processes import until
from served import Gateway, OpenGateway
from services import REDIS, answers, delete_keys, needs_redis

SECRETS = {
    name: f"secret-{name}-9f3b7c"
    for name in ("bearer", "x-api-key", "gemini", "azure", "query", "variable", "header", "state", "gateway", "text")
}
NOT_OURS = ("httpx2", "httpcore2", "asyncio")
"""What the test's own client and loop say."""


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, as JSON with tracebacks."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter(tracebacks=True))
    handler.addFilter(lambda record: not record.name.startswith(NOT_OURS))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    logging.getLogger("pegboard").setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        logging.getLogger("pegboard").setLevel(logging.NOTSET)


def headers() -> dict[str, str]:
    return {
        "authorization": f"Bearer {SECRETS['bearer']}",
        "x-api-key": SECRETS["x-api-key"],
        "x-goog-api-key": SECRETS["gemini"],
        "api-key": SECRETS["azure"],
        "x-pegboard-key": SECRETS["gateway"],
    }


@pytest.fixture
async def prefix() -> AsyncIterator[str]:
    """Of what is kept on a server, which is cleaned in the end."""
    name = f"test_{uuid4().hex}"
    yield name
    if answers(REDIS):
        await delete_keys(name)


async def every_request(gateway: Gateway, upstream: ModelUpstream) -> list[httpx2.Response]:
    """Requests that end in every way there is, as far as something was answered."""
    query = {"key": SECRETS["query"]}
    said = SECRETS["text"]
    chat = asking("openai_chat", said, schema=SIZED)
    found = []

    async def post(path: str, without: str = "", **more: object) -> None:
        shown = {name: value for name, value in headers().items() if name != without}
        try:
            found.append(await gateway.http.post(path, params=query, headers=shown, **more))  # type: ignore[arg-type]
        except httpx2.TransportError:
            return

    for mood in ("ok", "error", "cut", "mute"):
        upstream.mood = mood
        await post("/openai/v1/chat/completions", json=chat)
        await post("/gemini/v1beta/models/m:generateContent", json=asking("gemini", said, schema=SIZED))
    upstream.mood = "ok"
    for path in ("/keyed/v1/chat/completions", "/dead/v1/chat/completions", "/nobodys/v1/chat/completions"):
        await post(path, json=chat)
    await post("/openai/v1/chat/completions", without="x-pegboard-key", json=chat)
    await post("/openai/v1/chat/completions", content=f'{{"messages": "{said}", "tools": [{said}'.encode())
    await post("/openai/v1/chat/completions", content=b'{"messages": [{"role": 1, "content": "%s"}]}' % said.encode())
    await post("/openai/v1/chat/completions", json=chat | {"tools": [{"type": "function", "function": said}]})
    await post("/openai/v1/chat/completions", json=chat | {"messages": [{"role": said, "content": {said: said}}]})
    await post("/openai/v1/chat/completions", content=said.encode() * 10_000)
    await post("/closed/v1/chat/completions", content=f'{{"tools": "{said}'.encode())
    return found


@pytest.mark.requirement("M30")
@pytest.mark.parametrize(
    "state",
    ["redis://:{}@127.0.0.1:1/0", pytest.param(REDIS.replace("//", "//:{}@"), marks=needs_redis)],
    ids=["store-down", "store-there"],
)
async def test_no_secret_and_no_text_is_kept_or_shown(
    gateway_of: OpenGateway,
    upstream: ModelUpstream,
    events: MemoryEvents,
    log: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    prefix: str,
) -> None:
    monkeypatch.setenv("PROVIDER_KEY", SECRETS["variable"])
    monkeypatch.setenv("TENANT", SECRETS["header"])
    usual = {"url": upstream.url, "headers": {"x-tenant": "${TENANT}"}, "read_timeout": 0.3}
    upstreams = {
        "openai": usual,
        "gemini": usual | {"format": "gemini"},
        "keyed": usual | {"api_key_env": "PROVIDER_KEY"},
        "dead": usual | {"url": "http://127.0.0.1:1", "retries": 0},
        "closed": usual,
    }
    llm = {
        "upstreams": upstreams,
        "keys": {"team": {"hash": hashed(SECRETS["gateway"])}},
        "rules": [{"upstream": "closed", "fail": "closed"}],
        "most_body": 100_000,
        "policy": {"k": 1, "profile": "semantic", "least_tools": 0, "least_tokens": 0},
    }
    store = {"url": state.format(SECRETS["state"]), "prefix": prefix}
    async with gateway_of(llm=llm, state=store) as gateway:
        answered = await asyncio.wait_for(every_request(gateway, upstream), 60)
        await until(lambda: gateway.server._front.underway == 0)
        shown = [(await gateway.http.get(path)).text for path in ("/healthz", "/readyz", "/metrics")]

    told = [f"{answer.status_code} {dict(answer.headers)} {answer.text}" for answer in answered]
    kept = [json.dumps(event.as_dict(), default=str) for event in events.of(Event)]
    for place in [log.getvalue(), *shown, *told, *kept, repr(gateway.server)]:
        assert [name for name, secret in SECRETS.items() if secret in place] == [], place

    assert {200, 401, 413, 502, 503, 504, 529} <= {answer.status_code for answer in answered}
    assert {"filtered", "failed", "passed"} <= {event.outcome for event in events.of(ModelRequestServed)}
    assert '"logger": "pegboard.access"' in log.getvalue()
    arrived = " ".join(sent.whole for sent in upstream.sent)
    assert SECRETS["header"] in arrived
    assert SECRETS["variable"] in arrived
    assert SECRETS["gateway"] not in arrived
