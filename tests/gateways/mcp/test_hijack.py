"""Who has a token and another's session id gets nothing of that session: no results, no questions, no end of calls."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from doors import Raw
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.settings.server_spec import ServerSpec
from processes import until
from talking import ASKED_BY_FORM

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

TALKATIVE = str(Path(__file__).parents[2] / "servers" / "talkative.py")
TOKENS = {name: f"pgb_{name}-51f0aa-secret" for name in ("ann", "bob")}
ACCESS = {name: {"hash": hashed(token)} for name, token in TOKENS.items()}
ASK = {"what": "elicit", "tag": "ann"}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


def forged(session: str, token: str) -> list[str]:
    """What whoever has a token can make of another's session id."""
    inner, _, code = session.partition(".")
    keys = (token, hashed(token), hashed(token).removeprefix("sha256:"))
    made = [hmac.new(key.encode(), inner.encode(), hashlib.sha256).hexdigest() for key in keys]
    return [session, inner, f"{inner}.", *(f"{inner}.{each[:length]}" for each in made for length in (24, len(code)))]


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


@asynccontextmanager
async def talkative(open_door: OpenDoor, era: str) -> AsyncIterator[str]:
    spec = ServerSpec(name=era, command=sys.executable, args=(TALKATIVE, era))
    async with open_door(spec, access=ACCESS) as (url, _):
        yield url


@asynccontextmanager
async def calling(client: Raw, name: str, **arguments: Any) -> AsyncIterator[tuple[dict[str, Any], list[Any]]]:
    """A call that is under way: what was sent, and what has come on its stream."""
    message, headers = client.prepared("tools/call", {"name": name, "arguments": arguments})
    came: list[Any] = []
    async with client.http.stream("POST", client.url, json=message, headers=headers, timeout=None) as answer:

        async def read() -> None:
            async for line in answer.aiter_lines():
                came.extend([json.loads(line.removeprefix("data: "))] if line.startswith("data: {") else [])

        reading = asyncio.create_task(read())
        try:
            yield message, came
        finally:
            reading.cancel()
            await asyncio.wait([reading])


@pytest.mark.requirement("D2")
async def test_a_stolen_session_id_is_of_no_use_with_another_token(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with talkative(open_door, "legacy") as url:
        ann = await Raw(http, url, headers=bearer("ann"), capabilities=ASKED_BY_FORM).begin()
        assert ann.session is not None
        assert await ann.call("talk_legacy", tag="private") == "private"
        async with calling(ann, "ask_legacy", **ASK) as (call, came):
            await until(lambda: any(each.get("method") == "elicitation/create" for each in came))
            question = next(each["id"] for each in came if each.get("method") == "elicitation/create")
            said = {"action": "accept", "content": {"word": "bob"}}
            for stolen in forged(ann.session, TOKENS["bob"]):
                bob = Raw(http, url, session=stolen, headers=bearer("bob"))
                _, headers = bob.prepared("notifications/initialized", None)
                for event in range(8):
                    more = {"accept": "text/event-stream", "last-event-id": str(event)}
                    assert (await http.get(url, headers=headers | more)).status_code == 404
                reply = {"jsonrpc": "2.0", "id": question, "result": said}
                assert (await http.post(url, json=reply, headers=headers)).status_code == 404
                assert (await bob.post("notifications/cancelled", {"requestId": call["id"]})).status == 404
                assert (await http.delete(url, headers=headers)).status_code == 404
            _, headers = ann.prepared("notifications/initialized", None)
            reply = {"jsonrpc": "2.0", "id": question, "result": said | {"content": {"word": "ann"}}}
            assert (await http.post(url, json=reply, headers=headers)).status_code == 202
            await until(lambda: any(each.get("id") == call["id"] for each in came if "method" not in each))
            assert came[-1]["result"]["content"][0]["text"] == "ann: accept ann"


@pytest.mark.requirement("D2")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_state_of_a_request_is_of_no_use_with_another_token(
    open_door: OpenDoor, http: httpx2.AsyncClient, era: str
) -> None:
    async with talkative(open_door, era) as url:
        ann, bob = (
            Raw(http, url, modern=True, headers=bearer(name), capabilities=ASKED_BY_FORM) for name in ("ann", "bob")
        )
        params: dict[str, Any] = {"name": f"ask_{era}", "arguments": ASK}
        asked = await ann.result("tools/call", **params)
        (question,) = asked["inputRequests"]
        again = params | {"requestState": asked["requestState"]}

        def answer(word: str) -> dict[str, Any]:
            return again | {"inputResponses": {question: {"action": "accept", "content": {"word": word}}}}

        refused = await bob.post("tools/call", answer("bob"))
        assert refused.message["error"]["data"] == {"reason": "invalid_request_state"}
        done = await ann.result("tools/call", **answer("ann"))
        assert done["content"][0]["text"] == "ann: accept ann"


@pytest.mark.requirement("D2")
async def test_a_session_of_before_is_begun_anew_once_and_goes_on(
    open_door: OpenDoor, http: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    async with talkative(open_door, "legacy") as url:
        inner = "0123456789abcdef0123456789abcdef"
        code = hmac.new(hashed(TOKENS["ann"]).encode(), inner.encode(), hashlib.sha256).hexdigest()[:24]
        ann = Raw(http, url, session=f"{inner}.{code}", headers=bearer("ann"))
        answers = [await ann.post("tools/list", {}) for _ in range(3)]
        assert [answer.status for answer in answers] == [404] * 3, "by which a client begins anew (MCP 2025-11-25)"
        ann.session = None
        assert await (await ann.begin()).names()
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
