"""Clients whose person is sent to the page on which to sign in to a server, and whose call then goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from pegboard import Settings
from pegboard.clock import SYSTEM_CLOCK
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from pegboard.upstreams.oauth.sign_ins import SignIns
from processes import listening
from signers import SIGNED, Signer, control

Opened = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(autouse=True)
def _own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def server() -> Iterator[str]:
    with listening(SIGNED, '{"scopes": ["read"], "admin": true}') as url:
        yield url


@pytest.fixture
def opened(tmp_path: Path, server: str, events: MemoryEvents, encoder: FakeEncoder, era: str) -> Opened:
    """A client of a gateway before a server, to which somebody has signed in once; ``asked`` answers questions."""

    @asynccontextmanager
    async def connect(asked: Any, *, known: bool = True, **options: Any) -> AsyncIterator[Client]:
        servers = {"signed": ServerSpec(name="signed", url=f"{server}/mcp")}
        settings = Settings(
            servers=servers,
            cache_dir=tmp_path,
            state_dir=tmp_path,
            credentials="file",
            exposure="eager",
            start_wait=20.0,
            **options,
        )
        if known:
            await SignIns(settings, SYSTEM_CLOCK).sign_in(servers["signed"], Signer().person())
        parts = default_parts(settings, encoder=encoder, embeddings=MemoryEmbeddings(), events=events)
        async with (
            open_gateway(settings, parts) as gateway,
            Client(wire(gateway), mode=era, cache=None, elicitation_callback=asked) as client,
        ):
            yield client

    return connect


class Asked:
    """A client's answers: ``action``, after its person has opened the page."""

    def __init__(self, action: str = "accept") -> None:
        self.action = action
        self.questions: list[types.ElicitRequestURLParams] = []
        self.signer = Signer()

    async def __call__(self, _ctx: object, params: Any) -> types.ElicitResult:
        self.questions.append(params)
        if self.action == "accept":
            await self.signer.open(params.url)
        return types.ElicitResult(action=self.action)  # type: ignore[arg-type]


async def called(client: Client, tool: str = "whose") -> Any:
    listed = [each.name for each in (await client.list_tools()).tools]
    [name] = [each for each in listed if each.endswith(tool)]
    return await client.call_tool(name, {})


@pytest.mark.requirement("023.elicitation")
async def test_a_call_to_a_server_that_waits_for_a_sign_in_goes_on_after_it(opened: Opened, server: str) -> None:
    asked = Asked()
    async with opened(asked) as client:
        assert (await called(client)).content[0].text == "ann"
        await control(server, forget_access=True, forget_refresh=True)
        result = await called(client)

    [question] = asked.questions
    assert question.mode == "url"
    assert question.url.startswith(f"{server}/authorize?")
    assert "'signed'" in question.message
    assert result.content[0].text == "ann"


@pytest.mark.requirement("023.elicitation", "023.step-up")
async def test_a_call_that_needs_more_rights_goes_on_when_they_were_given(opened: Opened, server: str) -> None:
    asked = Asked()
    async with opened(asked) as client:
        result = await called(client, "remove")

    assert len(asked.questions) == 1
    assert result.content[0].text == "ann"
    assert "admin" in (await control(server))["scopes"][-1]


@pytest.mark.requirement("023.elicitation", "023.waiting")
@pytest.mark.parametrize("era", ["auto"], indirect=True)
async def test_who_declines_gets_the_reason_and_the_command(opened: Opened, server: str) -> None:
    async with opened(Asked("decline")) as client:
        await control(server, forget_access=True, forget_refresh=True)
        result = await called(client)

    assert result.is_error
    assert "pegboard login signed" in result.content[0].text


@pytest.mark.requirement("023.elicitation")
@pytest.mark.parametrize("era", ["auto"], indirect=True)
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])  # noqa: S104
async def test_clients_of_a_gateway_for_many_are_not_asked_to_sign_in_for_all(
    opened: Opened, server: str, host: str
) -> None:
    asked = Asked()
    async with opened(asked, host=host) as client:
        await control(server, forget_access=True, forget_refresh=True)
        result = await called(client)

    assert result.is_error
    assert asked.questions == []


@pytest.mark.requirement("023.waiting", "023.elicitation")
@pytest.mark.parametrize("pins", ["warn", "quarantine"])
async def test_a_server_that_never_listed_has_a_tool_that_signs_in_and_then_its_own(
    opened: Opened, server: str, pins: str
) -> None:
    asked = Asked()
    async with opened(asked, known=False, pins=pins) as client:
        listed = [each.name for each in (await client.list_tools()).tools]
        assert [name for name in listed if name.endswith("sign_in")], listed
        result = await called(client, "sign_in")
        assert "Its tools are listed now: whose, remove" in result.content[0].text
        after = [each.name for each in (await client.list_tools()).tools]
        assert not [name for name in after if name.endswith("sign_in")]
        assert (await called(client)).content[0].text == "ann"

    assert len(asked.questions) == 1


@pytest.mark.requirement("023.waiting")
@pytest.mark.parametrize("era", ["auto"], indirect=True)
async def test_without_elicitation_that_tool_names_the_command(opened: Opened) -> None:
    async with opened(None, known=False) as client:
        result = await called(client, "sign_in")

    assert result.is_error
    assert "pegboard login signed" in result.content[0].text
