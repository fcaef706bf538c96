"""The gateway article's text mode through the door: providers never see the tags, whatever is picked."""

from __future__ import annotations

import json

import httpx2
import pytest
from starlette.types import Receive, Scope, Send

from model_doors import model_door, served
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

TEXT = (
    "You have <toolname>get_weather</toolname><tooldescription>Get the forecast</tooldescription> and "
    "<toolname>book_venue</toolname><tooldescription>Reserve rooms</tooldescription>. <userq>the forecast</userq>"
)

ONE = "You have get_weatherGet the forecast and . the forecast"
BOTH = "You have get_weatherGet the forecast and book_venueReserve rooms. the forecast"


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.requirement("003.text-tags")
@pytest.mark.parametrize(("limit", "text"), [(1, ONE), (5, BOTH)])
async def test_tags_go_no_further_when_some_tools_stay_and_when_all_do(limit: int, text: str) -> None:
    path = "$.prompt"
    seed = {"queryJSONPath": path, "toolsJSONPath": path, "userQueryIsJson": False, "toolsIsJson": False}
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with served(echo) as behind:
        settings = {"url": f"http://{behind}", "format": "generic", "semantic_tool_filtering": seed | {"limit": limit}}
        async with (
            model_door({"texts": settings}, parts=parts) as (address, _, _),
            httpx2.AsyncClient(trust_env=False) as http,
        ):
            answer = await http.post(f"http://{address}/texts/generate", json={"prompt": TEXT})

    assert json.loads(answer.content) == {"prompt": text}
