"""A request's tools, picked by the gateway, are those that the router picks of the same tools for the same words."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from model_bodies import CODECS
from model_doors import Gateway, gateway_beside
from pegboard import Catalog
from pegboard.compose import build_routing, default_parts
from pegboard.evaluation.datasets import ToolSet, read_set
from pegboard.model import Server, ServerName
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard.stores import MemoryEmbeddings

SMALL = Path(__file__).parents[2] / "data" / "cli" / "small_set"
SETS = [SMALL] + [
    folder
    for name in ("metatool", "real120")
    if (folder := Path(os.environ.get("PEGBOARD_DATA", "/nowhere")) / name).exists()
]
"""Without PEGBOARD_DATA, the small one."""
QUERIES = 200
SECONDS = 240
"""For the first request, whose six hundred tools are embedded on a busy machine."""
PATIENT = {"patience": SECONDS, "filter_timeout": SECONDS}


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PEGBOARD_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        environment.setenv("PEGBOARD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        rules = [{"upstream": "*-off", "profile": "semantic"}]
        with gateway_beside(parts={"embeddings": MemoryEmbeddings()}, rules=rules, **PATIENT) as found:
            yield found


def tools_of(data: ToolSet) -> list[dict[str, Any]]:
    """The set's tools as a request offers them: of one name, the first."""
    named: dict[str, dict[str, Any]] = {}
    for tool in data.catalog.tools:
        schema = {"type": "object"} | dict(tool.input_schema or {})
        entry = {"name": tool.name, "description": tool.description, "input_schema": schema}
        named.setdefault(tool.name, entry)
    return list(named.values())


def router(tools: list[dict[str, Any]], profile: str) -> RoutingBoard:
    """A board of these tools, without servers, as requests have none."""
    read = [tool for entry in tools if (tool := CODECS["anthropic"].tool(entry)) is not None]
    settings = Settings(profile=profile)
    parts = default_parts(settings, embeddings=MemoryEmbeddings())
    return build_routing(settings, Catalog.build([(Server(name=ServerName("")), read)]), parts=parts)


@pytest.mark.timeout(600)  # two hundred queries, encoded twice
@pytest.mark.parametrize(("upstream", "profile"), [("anthropic", "hybrid"), ("anthropic-off", "semantic")])
@pytest.mark.parametrize("folder", SETS, ids=lambda folder: folder.name)
def test_the_tools_that_arrive_are_those_that_the_router_picks(
    gateways: Gateway, folder: Path, upstream: str, profile: str
) -> None:
    data = read_set(folder)
    tools = tools_of(data)
    queries = [query.text for query in data.queries][:QUERIES]

    async def picked() -> list[list[str]]:
        board = router(tools, profile)
        return [[tool.name for tool in (await board.route(query)).active] for query in queries]

    arrived = []
    with httpx2.Client(base_url=gateways.url, trust_env=False, timeout=SECONDS + 60) as client:
        for query in queries:
            asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": query}], "tools": tools}
            answer = client.post(f"/{upstream}/v1/messages", json=asked)
            assert answer.headers["x-pegboard-filter"] in ("filtered", "unchanged"), dict(answer.headers)
            arrived.append([tool["name"] for tool in gateways.mock.received.pop().json.get("tools", ())])

    assert arrived == asyncio.run(picked())
