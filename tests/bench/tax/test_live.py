from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pegboard.bench.tax.boards import Place
from pegboard.bench.tax.live import TASKS, figures, measure
from pegboard.bench.tax.plan import Plan
from pegboard.errors import ConfigError

PLAN = Plan.of(Place(), sets=["synthetic"], methods=["full", "semantic"], quick=True)


@asynccontextmanager
async def endpoint(most: int) -> AsyncIterator[tuple[str, list[Any]]]:
    """Calls the tool whose name has most words of the message; takes no more than ``most`` tools."""
    bodies: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        bodies.append(body)
        if len(body.get("tools", ())) > most:
            return web.json_response({"error": {"message": "too long"}}, status=400)
        names = [tool["function"]["name"] for tool in body["tools"]]
        said = body["messages"][-1]["content"]
        chosen = max(names, key=lambda name: sum(word in said for word in name.split("_")))
        call = {"id": "1", "type": "function", "function": {"name": chosen}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return web.json_response({"choices": [{"message": message}], "usage": {"prompt_tokens": 700}})

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/v1")), bodies


async def test_the_first_call_of_a_model_is_compared_with_the_tool_of_the_step() -> None:
    async with endpoint(most=1000) as (url, bodies):
        live = await measure(PLAN, url, "scripted")
    of = live["testbeds"]["synthetic"]

    assert 0 < of["full"]["right"][0] < 1
    assert 0 < of["semantic"]["right"][0] < 1
    assert figures(live)["live_prompt_tokens/synthetic/full"] == 700
    assert {len(body["tools"]) for body in bodies} == {120, 5}
    assert of["full"]["answers"] <= TASKS


async def test_a_request_that_is_too_long_for_the_model_counts_as_refused() -> None:
    async with endpoint(most=10) as (url, _):
        live = await measure(PLAN, url, "scripted")

    assert live["testbeds"]["synthetic"]["full"]["refused"] == 1
    assert live["testbeds"]["synthetic"]["semantic"]["refused"] == 0


async def test_an_endpoint_that_does_not_answer_is_said() -> None:
    with pytest.raises(ConfigError, match="does not answer"):
        await measure(PLAN, "http://127.0.0.1:9/v1", "none")
