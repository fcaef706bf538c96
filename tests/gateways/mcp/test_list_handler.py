"""Lists that are kept: what a client is sent is what the gateway lists now, checked once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp_types import methods
from pydantic import TypeAdapter

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.resources.resource_listing import KINDS, Kind
from pegboard.gateways.mcp.transport import list_handler
from pegboard.gateways.mcp.transport.list_handler import MOST_KEPT, ListHandler
from pegboard.gateways.mcp.transport.resource_handlers import ResourceHandlers
from pegboard.gateways.mcp.transport.task_handlers import TaskHandlers
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.extension_requests import ExtensionRequest
from upstream_specs import scripted

ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
OpenClient = Callable[..., AbstractAsyncContextManager[Client]]


class Listed:
    """A gateway that lists what it is told to."""

    def __init__(self, *definitions: dict[str, Any]) -> None:
        self.definitions = [*definitions]
        self.listings: list[Any] = []

    async def list_tools(self, _caller: Any) -> list[dict[str, Any]]:
        return [*self.definitions]


def tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The revisions for which a list was checked."""
    made: list[str] = []
    really = methods.serialize_server_result

    def serialize(method: str, version: str, result: Any) -> Any:
        made.append(version)
        return really(method, version, result)

    monkeypatch.setattr(list_handler.methods, "serialize_server_result", serialize)
    return made


def asking(gateway: Listed) -> Callable[..., Any]:
    handler = ListHandler(lambda _ctx: None)  # type: ignore[arg-type,return-value]

    async def ask(version: str = "2025-11-25", cursor: str | None = None) -> dict[str, Any]:
        params = types.PaginatedRequestParams(cursor=cursor)
        ctx = SimpleNamespace(protocol_version=version, lifespan_context=gateway)
        return await handler.handle(ctx, params)  # type: ignore[arg-type]

    return ask


@pytest.mark.requirement("022.list-kept")
async def test_a_list_that_is_the_same_is_checked_once_for_each_revision(checks: list[str]) -> None:
    ask = asking(Listed(tool("one"), tool("two", futureField={"kept": True})))
    first = await ask()
    again = await ask()
    modern = await ask("2026-07-28")

    assert first == again == {"tools": [tool("one"), tool("two", futureField={"kept": True})]}
    assert modern["resultType"] == "complete"
    assert modern["cacheScope"] == "private"
    assert checks == ["2025-11-25", "2026-07-28"]


@pytest.mark.requirement("022.list-kept")
async def test_whatever_changes_in_a_definition_is_listed_at_once(checks: list[str]) -> None:
    gateway = Listed(tool("one"), tool("two", description="old"))
    ask = asking(gateway)
    await ask()
    gateway.definitions[1] = tool("two", description="new")

    assert (await ask())["tools"][1]["description"] == "new"
    gateway.definitions.pop()
    assert await ask() == {"tools": [tool("one")]}
    assert len(checks) == 3


@pytest.mark.requirement("022.list-kept")
async def test_what_a_client_does_with_its_answer_changes_none_that_follows() -> None:
    ask = asking(Listed(tool("one")))
    (await ask("2026-07-28")).pop("tools")

    assert (await ask("2026-07-28"))["tools"] == [tool("one")]


async def test_each_page_is_kept_apart_and_so_few_that_memory_is_bounded(checks: list[str]) -> None:
    gateway = Listed(*(tool(f"tool{number}", description="x" * 250_000) for number in range(3)))
    ask = asking(gateway)
    first = await ask()
    second = await ask(cursor=first["nextCursor"])

    assert [each["name"] for each in (*first["tools"], *second["tools"])] == ["tool0", "tool1"]
    assert await ask(cursor=first["nextCursor"]) == second
    assert len(checks) == 2
    for number in range(MOST_KEPT):
        gateway.definitions = [tool(f"other{number}")]
        await ask()
    gateway.definitions = [tool("other0")]
    await ask()
    assert len(checks) == 2 + MOST_KEPT


async def test_a_definition_that_breaks_the_protocol_is_left_out_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = Listed(tool("one"), {"name": "two", "inputSchema": "none"}, tool("three", outputSchema={"type": 5}))
    ask = asking(gateway)
    for version in ("2025-11-25", "2025-06-18"):
        assert await ask(version) == {"tools": [tool("one"), tool("three")]}
    gateway.definitions.append(tool("four", outputSchema={"type": "object", "required": "x"}))

    assert (await ask())["tools"] == [tool("one"), tool("three"), tool("four")]
    assert [record.getMessage().partition(", as MCP")[0] for record in caplog.records] == [
        "tools/list: two is listed not",
        "tools/list: four is listed without its output schema",
    ]


async def test_a_page_that_is_wrong_beside_its_definitions_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_handler, "page", lambda *_of: {"tools": [tool("one")], "nextCursor": 5})
    with pytest.raises(MCPError, match="invalid result"):
        await asking(Listed(tool("one")))()


@pytest.mark.parametrize("kind", ["resources", "resourceTemplates", "prompts"])
async def test_a_resource_or_prompt_that_breaks_the_protocol_is_left_out(kind: Kind) -> None:
    good, bad = ({KINDS[kind].identity: f"note://{name}", "name": name} for name in ("good", "bad"))

    async def listed(*_of: Any) -> list[dict[str, Any]]:
        return [good, bad | {"title": 5}]

    async def started() -> None:
        pass

    gateway: Any = SimpleNamespace(resources=SimpleNamespace(listed=listed), view=SimpleNamespace(started=started))
    handlers: Any = ResourceHandlers(lambda _ctx: Caller(session="s"), TaskHandlers(lambda _ctx: Caller()))
    ctx = SimpleNamespace(protocol_version="2025-11-25", lifespan_context=gateway)
    on_list = {
        "resources": "on_list_resources",
        "resourceTemplates": "on_list_resource_templates",
        "prompts": "on_list_prompts",
    }[kind]

    assert await handlers.handlers()[on_list](ctx, None) == {kind: [good]}


OF_ANYTHING: dict[str, Any] = {
    "ids": {"type": "array", "items": {"type": "integer"}},
    "either": {"anyOf": [{"type": "array"}, {"type": "object"}]},
    "fields": {"type": "object", "properties": {"done": {"type": "boolean"}}},
}


async def test_a_server_of_2026_with_lists_as_results_takes_no_tools_from_older_clients(
    client_of: OpenClient, era: str, tmp_path: Path
) -> None:
    file = tmp_path / "listed.json"
    tools = [tool(name, description=name, outputSchema=schema) for name, schema in OF_ANYTHING.items()]
    said = {"title": "Listed", "instructions": "", "tools": tools, "wordless": ["either"]}
    file.write_text(json.dumps(said | {"structured": {"ids": [1, 2], "either": ["é"]}}), "utf-8")
    code = str(Path(__file__).parents[2] / "servers" / "listed.py")
    modern = ServerSpec(name="modern", command=sys.executable, args=(code, str(file)), env={"LISTED_MODERN": "1"})

    async with client_of(modern, scripted(), exposure="eager") as client:
        found = {each.name: each.output_schema for each in (await client.list_tools()).tools}
        ids, either, fields = [await client.call_tool(name, {}) for name in OF_ANYTHING]

    known: dict[str, Any] = OF_ANYTHING
    if era == "legacy":
        known = dict.fromkeys(OF_ANYTHING) | {"fields": OF_ANYTHING["fields"]}
    assert {name: found[name] for name in OF_ANYTHING} == known
    assert "echo" in found, "another server's"
    assert [each.structured_content for each in (ids, either)] == ([[1, 2], ["é"]] if era == "auto" else [None, None])
    said_in_text = [[block.text for block in each.content] for each in (ids, either)]  # type: ignore[union-attr]
    assert said_in_text == [["listed/ids"], [] if era == "auto" else ['["é"]']]
    assert fields.structured_content == {"done": True}


async def test_a_list_with_parameters_that_are_none_is_refused_before_anything_is_listed(client_of: OpenClient) -> None:
    async with client_of() as client:
        request: Any = ExtensionRequest(method="tools/list", params={"cursor": 7})
        with pytest.raises(MCPError) as caught:
            await client.session.send_request(request, ANY)
        listed = await client.list_tools()

    assert caught.value.error.code == types.INVALID_PARAMS
    assert listed.tools
