"""Arguments that JSON in UTF-8 cannot hold are the fault of their call: the connection, which all share, lives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import mcp_types as types
import pytest

from doors import Raw
from faults import MakeFaulty
from pegboard.gateways.mcp.gateway.host import Host

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]


def nested(levels: int) -> Any:
    inner: Any = "deep"
    for _ in range(levels):
        inner = [inner]
    return inner


UNSENDABLE = [
    ({"text": "half a pair: \ud83d"}, "surrogate"),
    ({"text": "", "half a pair: \ud83d": 1}, "surrogate"),
    ({"text": "", "more": nested(300)}, "nested too deeply"),
]


async def refused(client: Raw, arguments: dict[str, Any]) -> dict[str, Any]:
    """The error that the client gets to a call with these arguments, which it writes in ASCII."""
    message, headers = client.prepared("tools/call", {"name": "echo", "arguments": arguments})
    headers["content-type"] = "application/json"
    answer = await client.http.post(client.url, content=json.dumps(message), headers=headers)
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    [said] = [json.loads(line) for line in lines if line.startswith("{")]
    return dict(said["error"])


@pytest.mark.parametrize(("arguments", "why"), UNSENDABLE, ids=["text", "key", "depth"])
async def test_arguments_that_cannot_be_sent_end_no_other_call(
    open_door: OpenDoor, faulty: MakeFaulty, arguments: dict[str, Any], why: str
) -> None:
    async with open_door(faulty(), exposure="static") as (url, _), httpx2.AsyncClient(timeout=60) as http:
        client = Raw(http, url, modern=True)
        pid = await client.call("pid")
        others = [asyncio.create_task(client.call("late", text=str(at), n=500)) for at in range(5)]
        await asyncio.sleep(0.1)
        for _ in range(3):
            error = await refused(client, arguments)
            assert error["code"] == types.INVALID_PARAMS
            assert why in error["message"]
        assert await asyncio.gather(*others) == [str(at) for at in range(5)]
        assert await client.call("pid") == pid, "the server was left alone"
        assert await client.call("echo", text="whole \U0001f600") == "whole \U0001f600"
