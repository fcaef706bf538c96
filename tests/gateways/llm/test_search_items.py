"""A model that searches for tools through the gateway finds the skills and agents of its configuration, too."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mock_providers import MockProviders
from mock_providers.scripted import Calls, Model, Says, Seen
from model_bodies import SIZED, asking
from model_doors import PATIENT, SMALL_TOO, gateway_beside, served
from pegboard.gateways.access_keys import new_key
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.serve import serving
from pegboard.settings import Settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

from sdk_agents import AGENTS, Job
from sdk_drivers import JOBS, RENEW

BODY = "Read the tide at each harbour first, then the wind."
SKILL = "---\nname: {0}\ndescription: Plans a day at sea by {0}\n---\n{1}\n"
AGENT = {"name": "Ferry desk", "description": "Books ferries across the sea", "url": "https://agents.example/ferries"}
POLICY = {"k": 2, "ways": ["tools"], "way_back": True}
SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("office")


@server.resource("office://hours", description="The opening hours of the office")
def hours() -> str:
    return "Nine to five"


server.run()
"""
FEW = dict(list(JOBS.items())[:2])


@pytest.fixture
def items(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two skills, of which one has the text, and an agent."""
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path / "cache"))
    for name, body in {"sailing": BODY, "rowing": "Row."}.items():
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_text(SKILL.format(name, body))
    (tmp_path / "ferries.json").write_text(json.dumps(AGENT))
    return {"skills": [tmp_path / "skills"], "agents": [tmp_path / "ferries.json"]}


def quick() -> dict[str, Any]:
    """Parts for a process that need not load an encoder."""
    return {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}


def searching(**arguments: str) -> Model:
    """A model that makes one search."""

    def model(seen: Seen) -> Says:
        if "search_tools" in seen.answered:
            return Says(text="done")
        return Says(calls=[Calls(tool="search_tools", arguments=arguments)])

    return model


@pytest.mark.requirement("025.items-everywhere")
@pytest.mark.parametrize("limits", [{}, {"most": {"skill": 0}, "budgets": {"agent": 1}}], ids=["default", "none"])
def test_a_search_of_a_model_brings_the_best_skill_with_its_text_and_the_agents_that_match(
    items: dict[str, Any], limits: dict[str, Any]
) -> None:
    with gateway_beside(policy=POLICY, parts=quick(), items=items | limits) as gateway:
        gateway.mock.model = searching(query="sailing sea")
        AGENTS["chat"].run(gateway.url, Job(ask=RENEW))
        last = gateway.mock.received[-1].body.decode()

    assert (BODY in last, AGENT["url"] in last) == ((True, True) if not limits else (False, False))


@pytest.mark.requirement("025.items-everywhere")
@pytest.mark.parametrize("agent", ["chat", "messages", "contents"])
@pytest.mark.parametrize("tools", [JOBS, FEW], ids=["some left out", "all sent"])
def test_likely_items_are_named_with_the_search_from_the_first_turn_on_and_read_by_address(
    items: dict[str, Any], agent: str, tools: dict[str, str]
) -> None:
    limits = {"most": {"skill": 1}}
    with gateway_beside(policy=POLICY, parts=quick(), items=items | limits) as gateway:
        gateway.mock.model = searching(query="skill://pegboard/sailing", kind="skill")
        AGENTS[agent].run(gateway.url, Job(ask="Rowing: a day at sea", tools=tools))
        first, last = (gateway.mock.received[at].body.decode() for at in (0, -1))
        gateway.mock.received.clear()
        AGENTS[agent].run(gateway.url, Job(ask="An invoice", tools=tools))
        unrelated = gateway.mock.received[0].body.decode()

    assert "- skill rowing: Plans a day at sea by rowing" in first
    assert "- skill sailing" not in first, "one of a kind"
    assert '"enum":["tool","skill","agent","prompt","resource"]' in first
    assert BODY not in first
    assert BODY in last
    assert "- skill" not in unrelated
    assert ("search_tools" in unrelated) == (tools is JOBS), "what may not help is not offered"


@pytest.mark.requirement("025.items-everywhere")
def test_what_is_named_stays_the_same_in_a_conversation(items: dict[str, Any]) -> None:
    """Else the cache of everything behind the tools would be lost whenever the subject changes."""
    said = [{"role": "user", "content": "Sailing: plans for a day"}]
    more = [{"role": "assistant", "content": "Fine."}, {"role": "user", "content": "Book ferries across the sea"}]
    with gateway_beside(policy=POLICY, parts=quick(), items=items) as gateway, httpx2.Client(trust_env=False) as http:
        for messages in (said, said + more):
            body = asking("openai_chat") | {"model": "some", "messages": messages}
            http.post(f"{gateway.url}/openai/v1/chat/completions", json=body).raise_for_status()
        one, two = (json.loads(each.body)["tools"][-1]["function"] for each in gateway.mock.received)

    assert "- skill sailing" in one["description"]
    assert "Ferry desk" not in one["description"]
    assert one == two


@pytest.mark.requirement("025.items-everywhere")
@pytest.mark.parametrize("closed", [False, True], ids=["open", "with tokens"])
async def test_prompts_and_resources_of_the_servers_of_one_serve_are_found_by_models_too(
    tmp_path: Path, closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where MCP clients need a token: a model has none."""
    monkeypatch.setenv("A_TOKEN", new_key())
    mock = MockProviders()
    async with served(mock) as behind:
        settings = Settings(
            servers={"office": {"command": sys.executable, "args": ["-c", SERVER]}},
            llm={
                "upstreams": {"openai": {"url": f"http://{behind}"}},
                **PATIENT,
                "policy": SMALL_TOO | POLICY,
            },
            access={"me": {"env": "A_TOKEN"}} if closed else {},
            cache_dir=tmp_path,
            state_dir=tmp_path,
            port=0,
            lazy=False,
        )
        listening = asyncio.Event()
        async with serving(settings, Source(), started=lambda url: listening.set(), **quick()) as server:
            ending = asyncio.create_task(server.until_end())
            await listening.wait()
            base = server.url.removesuffix("/mcp")
            async with httpx2.AsyncClient(trust_env=False, timeout=60, base_url=base) as http:

                async def answered(query: str) -> str:
                    mock.received.clear()
                    mock.model = searching(query=query, kind="resource")
                    asked = asking("openai_chat", tools=JOBS, schema=SIZED) | {"model": "some"}
                    (await http.post("/openai/v1/chat/completions", json=asked)).raise_for_status()
                    return str(json.loads(mock.received[-1].body)["messages"][-1]["content"])

                async with asyncio.timeout(20):
                    while "office://hours" not in await answered("opening hours") and not closed:
                        pass  # the server starts
                read = await answered("office://hours")
            server.end(0)
            server.end(0)
            await ending

    assert ("Nine to five" in read) != closed
