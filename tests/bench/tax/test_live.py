from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pegboard.errors import ConfigError
from pegboard_bench import results
from pegboard_bench.tax import live_page
from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.live import TASKS, Live, called, figures, measure
from pegboard_bench.tax.plan import Plan
from pegboard_bench.tax.run import run_model

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


async def measured(url: str, tasks: int = TASKS) -> Live:
    """What is known at the end."""
    return [found async for found in measure(PLAN, url, "scripted", tasks)][-1]


async def test_the_first_call_of_a_model_is_compared_with_the_tool_of_the_step() -> None:
    async with endpoint(most=1000) as (url, bodies):
        live = await measured(url)
    of = live["testbeds"]["synthetic"]

    assert 0 < of["full"]["right"][0] < 1
    assert 0 < of["semantic"]["right"][0] < 1
    assert figures(live)["live_prompt_tokens/synthetic/full"] == 700
    assert {len(body["tools"]) for body in bodies} == {120, 5}
    assert of["full"]["answers"] <= TASKS
    assert of["full"]["offered"][0] == 1
    assert of["semantic"]["right"][0] <= of["semantic"]["offered"][0] < 1


async def test_a_request_that_is_too_long_for_the_model_counts_as_refused() -> None:
    async with endpoint(most=10) as (url, _):
        live = await measured(url)

    assert live["testbeds"]["synthetic"]["full"]["refused"][0] == 1
    assert live["testbeds"]["synthetic"]["semantic"]["refused"][0] == 0


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (400, '{"error": "no such model"}', "no such model"),
        (400, "a tool's name exceeds 64", "64"),
        (200, '{"error": "slow down"}', "KeyError"),
        (200, "?", "JSON"),
    ],
)
async def test_an_answer_that_is_none_ends_the_run_with_what_it_said(status: int, body: str, why: str) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    app = web.Application(client_max_size=2**24)
    app.router.add_post("/v1/chat/completions", answer)
    async with TestServer(app) as server:
        with pytest.raises(ConfigError, match=why):
            await measured(str(server.make_url("/v1")))


async def test_an_endpoint_that_does_not_answer_is_said() -> None:
    with pytest.raises(ConfigError, match="does not answer"):
        await measured("http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"tool_calls": [{"function": {"name": "a"}}, {"function": {"name": "b"}}]}, "a"),
        ({"content": '```json\n{"name": "a", "arguments": {"b": 1}}\n```'}, "a"),
        ({"content": '{not JSON} {"name": "a"}'}, "a"),
        ({"content": '{"name": 3}'}, None),
        ({"content": "I would use git status."}, None),
        ({"content": None}, None),
    ],
)
def test_a_call_is_read_from_the_protocol_or_from_the_text_of_a_small_model(
    message: dict[str, Any], name: str | None
) -> None:
    assert called(message) == name


async def test_a_run_writes_what_the_model_called_and_its_section(tmp_path: Path) -> None:
    async with endpoint(most=10) as (url, _):
        plan = replace(PLAN, parts=("model",), quick=False)
        path = await asyncio.to_thread(
            run_model, plan, url=url, model="scripted", tasks=4, out=tmp_path, command="make", page=tmp_path / "page.md"
        )
    section = live_page.section(results.read(path))

    assert "| B1 full schema | – | 100% | 100% |" in section
    assert "| semantic filter, rank 5 (`semantic`) | 700 | 0% |" in section
    assert section.strip().splitlines()[-1] in (tmp_path / "page" / "live.md").read_text("utf-8")
