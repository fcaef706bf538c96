"""Skills of servers (SEP-2640): relayed, found by the search for tools, and loaded with their digests checked."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from pydantic import TypeAdapter

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.resources.skills import unverified
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard.upstreams.extension_requests import SKILLS, ExtensionRequest
from pegboard_bench.conformance import skills
from pegboard_bench.conformance.server import made
from upstream_specs import scripted

SERVER = ServerSpec(name="desk", command=sys.executable, args=("-m", "pegboard_bench.conformance.server"))
REFUNDS = "skill://refund-handling/SKILL.md"
POLICY = "skill://refund-handling/references/policy.md"
ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])

Result = dict[str, Any]


@asynccontextmanager
async def before(folder: Path, *specs: ServerSpec, mode: str = "auto") -> AsyncIterator[Client]:
    options: dict[str, Any] = {"cache_dir": folder, "start_wait": 60.0, "connect_timeout": 60.0, "often_used": 0}
    settings = Settings(servers={spec.name: spec for spec in specs}, exposure="static", **options)
    parts = default_parts(settings, encoder=FakeEncoder(), embeddings=MemoryEmbeddings())
    async with open_gateway(settings, parts) as gateway, Client(wire(gateway), mode=mode, cache=None) as client:
        if specs:  # a search waits only a moment for the lists of a busy machine
            await client.list_prompts()
            await client.list_resources()
            await client.list_resource_templates()
        yield client


async def asked(of: Client, method: str, **params: Any) -> Result:
    request: Any = ExtensionRequest(method=method, params=params)
    return await of.session.send_request(request, ANY)  # type: ignore[type-var]


async def answered(of: Client, name: str, **arguments: Any) -> Result:
    result = await of.call_tool(name, arguments)
    found: Result = json.loads(result.content[0].text)  # type: ignore[union-attr]
    return found


async def listed(of: Client) -> list[Result]:
    """Every page."""
    found, cursor = [], {}
    while True:
        page = await asked(of, "skills/list", **cursor)
        found += page["skills"]
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


async def test_skills_are_the_same_through_the_gateway_as_directly(tmp_path: Path) -> None:
    async with Client(made(), cache=None) as directly, before(tmp_path, SERVER, scripted()) as through:
        assert await listed(through) == await listed(directly)
        for side in (through, directly):
            assert (side.server_capabilities.extensions or {})[SKILLS] == {"directoryRead": True}
        for method, uri in (("skills/get", REFUNDS), ("resources/directory/read", "skill://refund-handling")):
            one, other = [await asked(side, method, uri=uri) for side in (through, directly)]
            assert {key: one.get(key) for key in ("skill", "resources")} == {
                key: other.get(key) for key in ("skill", "resources")
            }
        one_file, other_file = [(await side.read_resource(POLICY)).contents for side in (through, directly)]
        assert one_file == other_file
        with pytest.raises(MCPError, match="Skill not found") as unknown:
            await asked(through, "skills/get", uri="skill://nothing/SKILL.md")
        assert unknown.value.error.code == -32602


async def test_where_no_server_has_skills_the_methods_do_not_exist(tmp_path: Path) -> None:
    async with before(tmp_path, scripted()) as through:
        assert SKILLS not in (through.server_capabilities.extensions or {})
        with pytest.raises(MCPError) as unknown:
            await asked(through, "skills/list")
        assert unknown.value.error.code == -32601


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_search_finds_a_skill_and_says_how_to_read_it(tmp_path: Path, mode: str) -> None:
    async with before(tmp_path, SERVER, mode=mode) as through:
        found = await answered(through, "search_tools", query="give money back to a customer")
        assert found["skills"][0] == {
            "name": "refund-handling",
            "description": "Give a customer the money back",
            "uri": REFUNDS,
        }
        assert found["read_skill"] == f'Call describe_tools with {{"names": ["{REFUNDS}"]}}.'
        assert "skills" not in await answered(through, "search_tools", query="younger than 90 days")
        [loaded] = (await answered(through, "describe_tools", names=[REFUNDS]))["skills"]
        assert loaded == {"uri": REFUNDS, "text": skills.FILES[REFUNDS], "files": [POLICY]}
        by_body = await answered(through, "search_tools", query="younger than 90 days")
        assert [each["uri"] for each in by_body["skills"]] == [REFUNDS]
        unknown = await answered(through, "describe_tools", names=["skill://nothing/SKILL.md"])
        assert list(unknown["unknown"]) == ["skill://nothing/SKILL.md"]


def test_a_file_that_is_not_what_its_entry_says_is_not_used() -> None:
    [entry] = [each for each in skills.ENTRIES if each["uri"] == REFUNDS]
    text = skills.FILES[REFUNDS]
    assert unverified(entry, REFUNDS, text) == ""
    assert "bytes" in unverified(entry, REFUNDS, text + "more")
    assert "digest" in unverified(entry, REFUNDS, text.replace("full", "part"))
    renamed = {**entry, "resources": "dynamic", "frontmatter": {**entry["frontmatter"], "description": "Other"}}
    assert "description" in unverified(renamed, REFUNDS, text)
    assert unverified({**renamed, "frontmatter": {}}, REFUNDS, text) == ""
