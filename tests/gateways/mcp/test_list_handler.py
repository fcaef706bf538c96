"""Lists that are kept: what a client is sent is what the gateway lists now, checked once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp_types import methods
from pydantic import TypeAdapter

from pegboard.gateways.mcp.transport import list_handler
from pegboard.gateways.mcp.transport.list_handler import MOST_KEPT, ListHandler
from pegboard.upstreams.extension_requests import ExtensionRequest

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


async def test_a_definition_that_breaks_the_protocol_is_an_error_every_time() -> None:
    ask = asking(Listed({"name": "one", "inputSchema": "none"}))
    for _ in range(2):
        with pytest.raises(MCPError, match="invalid result"):
            await ask()


async def test_a_list_with_parameters_that_are_none_is_refused_before_anything_is_listed(client_of: OpenClient) -> None:
    async with client_of() as client:
        request: Any = ExtensionRequest(method="tools/list", params={"cursor": 7})
        with pytest.raises(MCPError) as caught:
            await client.session.send_request(request, ANY)
        listed = await client.list_tools()

    assert caught.value.error.code == types.INVALID_PARAMS
    assert listed.tools
