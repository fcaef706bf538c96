"""Users who sign in for themselves at a server: in a browser anywhere, on a page of the gateway first."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from starlette.types import Receive, Scope, Send
from typer.testing import CliRunner, Result

from failing import Failing
from pegboard.apps.cli import app
from pegboard.clock import SystemClock
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport import sign_in_pages
from pegboard.model import Pin, ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryPins, MemoryReplicas, MemorySigningKeys
from pegboard.trust import approvals
from pegboard.upstreams.oauth.browser_returns import BrowserReturns
from processes import listening
from signers import AUTHORIZATION, RESOURCE
from user_browsers import Browser, client_of, confirmed

pytestmark = pytest.mark.requirement("023.users")

ANSWERING = str(Path(__file__).parents[2] / "clients" / "answering_browser.py")

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
Opened = Callable[[], AbstractAsyncContextManager[str]]


@pytest.fixture(autouse=True)
def _own_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def personal() -> Iterator[str]:
    with (
        listening(AUTHORIZATION, json.dumps({"clients": {"resource": "resource"}})) as issuer,
        listening(RESOURCE, json.dumps({"issuer": issuer, "personal": True})) as url,
    ):
        yield url


@pytest.fixture
def opened(open_door: OpenDoor, personal: str) -> Callable[[], AbstractAsyncContextManager[str]]:
    return lambda: door_before(open_door, personal)


@asynccontextmanager
async def door_before(
    open_door: OpenDoor, personal: str, shown: Callable[[], str] | None = None, **options: Any
) -> AsyncIterator[str]:
    """``shown`` is the address of its pages, if that is another than its own."""
    spec = ServerSpec(name="personal", url=f"{personal}/mcp", per_user=True)
    access = {name: {"hash": hashed(f"key-of-{name}")} for name in ("ann", "bob", "eve")}
    async with open_door(spec, access=access, exposure="eager", credentials="file", **options) as (url, host):
        own = shown or (lambda: url.removesuffix("/mcp"))
        host.sign_ins._returns = BrowserReturns(own, host.sign_ins.mark)
        yield url


async def test_each_user_signs_in_on_a_page_that_names_them(opened: Opened, era: str) -> None:
    async with opened() as door:
        for name in ("ann", "bob"):
            browser = Browser(name)
            async with client_of(door, name, browser, era) as client:
                assert [each.name for each in (await client.list_tools()).tools] == ["sign_in"]
                result = await client.call_tool("sign_in", {})
                assert f"diary_of_{name}" in result.content[0].text
                assert (await client.call_tool("whose", {})).content[0].text == name
            [page] = browser.asked
            assert page.startswith(door.removesuffix("/mcp") + "/oauth/sign-in/")
            assert f"for <b>{name}</b>" in browser.pages[0]
            assert "You are signed in to personal" in browser.pages[-1]


async def test_a_browser_that_the_balancer_sends_to_another_process_signs_in_at_the_one_that_asked(
    open_door: OpenDoor, personal: str
) -> None:
    """Ann's and Bob's clients are at the first process, their browsers at the second."""
    stores = {"replicas": MemoryReplicas(SystemClock()), "signing_keys": MemorySigningKeys()}
    bases: list[str] = []
    async with (
        door_before(open_door, personal, lambda: bases[0], replaced=stores) as first,
        door_before(open_door, personal, replaced=stores) as second,
    ):
        bases.append(second.removesuffix("/mcp"))
        for name in ("ann", "bob"):
            browser = Browser(name)
            async with client_of(first, name, browser, "legacy") as client:
                result = await client.call_tool("sign_in", {})
                assert f"diary_of_{name}" in result.content[0].text
            assert browser.asked[0].startswith(bases[0])
            assert f"for <b>{name}</b>" in browser.pages[0]
            assert "You are signed in to personal" in browser.pages[-1]

        refused: list[httpx2.Response] = []

        async def sent_by_another_site(_ctx: object, params: Any) -> types.ElicitResult:
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as eves, httpx2.AsyncClient(timeout=30) as bobs:
                refused.append(await bobs.post(params.url, data=confirmed((await eves.get(params.url)).text)))
            return types.ElicitResult(action="decline")

        async with client_of(first, "eve", sent_by_another_site, "legacy") as client:
            assert (await client.call_tool("sign_in", {})).is_error
        assert "was not opened in this browser" in refused[0].text


@pytest.mark.requirement("023.login")
async def test_a_sign_in_on_the_command_line_is_for_one_user_and_a_gateway_that_runs_notices_it(
    open_door: OpenDoor, personal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ann consents in a browser, and `pegboard login` says for whom; her client has no elicitation by URL."""
    access = {name: {"hash": hashed(f"key-of-{name}")} for name in ("ann", "bob")}
    config = tmp_path / "servers.json"
    kept = {"state_dir": str(tmp_path), "credentials": "file", "access": access}
    entry = {"url": f"{personal}/mcp", "per_user": True}
    config.write_text(json.dumps({"mcpServers": {"personal": entry}, "pegboard": kept}), "utf-8")
    answering = webbrowser.get(f"{sys.executable} {ANSWERING} allow %s")
    monkeypatch.setattr(webbrowser, "open", answering.open)

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--config", str(config)], prog_name="pegboard")

    async with (
        door_before(open_door, personal) as door,
        client_of(door, "ann", None, "legacy") as ann,
        client_of(door, "bob", None, "legacy") as bob,
    ):
        assert [each.name for each in (await ann.list_tools()).tools] == ["sign_in"]
        waiting = (await ann.call_tool("sign_in", {})).content[0].text
        assert "pegboard login personal --user NAME" in waiting
        done = await asyncio.to_thread(run, "login", "personal", "--user", "ann")
        assert "Signed in to 'personal' for ann at" in done.output, done.output
        assert (await _called(ann, "whose")).content[0].text == "ann"
        assert [each.name for each in (await bob.list_tools()).tools] == ["sign_in"]
    shown = await asyncio.to_thread(run, "whoami", "--json")
    assert [each["user_name"] for each in json.loads(shown.output)["sign_ins"]] == ["ann"]
    for user, code in (("bob", 2), ("ann", 0)):
        assert (await asyncio.to_thread(run, "logout", "personal", "--user", user)).exit_code == code


class LatePins:
    """A store of pins that says nothing of a user's own server for a while, or for good."""

    def __init__(self, store: Any, *, silent: bool = False) -> None:
        self._store = store
        self.silent = silent

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        while tools and any("@" in tool.server for tool in tools):
            await asyncio.sleep(0.3)
            if not self.silent:
                break
        return await self._store.get(tools)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def test_a_call_right_after_the_sign_in_waits_until_the_approvals_were_read(
    open_door: OpenDoor, personal: str, era: str
) -> None:
    late = {"pins": LatePins(MemoryPins())}
    async with (
        door_before(open_door, personal, pins="quarantine", replaced=late, start_wait=0.0) as door,
        client_of(door, "ann", Browser("ann"), era) as client,
    ):
        signed_in, called = await asyncio.gather(_called(client, "sign_in"), _called(client, "whose"))
        assert "diary_of_ann" in signed_in.content[0].text
        assert (called.is_error, called.content[0].text) == (False, "ann")


async def _called(client: Client, tool: str) -> Any:
    """The result of a tool, called as soon as the gateway knows it."""
    while True:
        result = await client.call_tool(tool, {})
        if "is not available" not in result.content[0].text:
            return result
        await asyncio.sleep(0.02)


async def test_a_store_that_says_nothing_is_no_store_that_fails(
    open_door: OpenDoor, personal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "FIRST_ANSWER_SECONDS", 0.2)
    silent, down = LatePins(MemoryPins(), silent=True), Failing(MemoryPins())
    for name, store, said in (("ann", silent, "has not answered yet"), ("bob", down, "cannot be reached now")):
        async with (
            door_before(open_door, personal, pins="quarantine", replaced={"pins": store}) as door,
            client_of(door, name, Browser(name), "auto") as client,
        ):
            assert [each.name for each in (await client.list_tools()).tools] == ["sign_in"]
            down.down = True
            signed_in = await client.call_tool("sign_in", {})
            assert "listed now: none" in signed_in.content[0].text
            refused = await client.call_tool("whose", {})
            assert refused.is_error
            assert said in refused.content[0].text


async def test_a_page_that_another_user_passes_on_signs_nobody_in(opened: Opened) -> None:
    """Eve opens her page, and sends Bob the address of the authorization server that it leads to."""
    async with opened() as door:
        bob, ended = Browser("bob"), asyncio.Event()

        async def passed_on(_ctx: object, params: Any) -> types.ElicitResult:
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as eves:
                page = (await eves.get(params.url)).text
                target = (await eves.post(params.url, data=confirmed(page))).headers["location"]
            async with httpx2.AsyncClient(trust_env=False, follow_redirects=True, timeout=60) as bobs:
                await bob.consent(bobs, await bobs.get(target))
            ended.set()
            return types.ElicitResult(action="decline")

        async with client_of(door, "eve", passed_on, "legacy") as client:
            result = await client.call_tool("sign_in", {})
            assert ended.is_set()
            assert "was not begun in this browser" in bob.pages[-1]
            assert result.is_error
            assert "Sign in yourself" in result.content[0].text
            assert [each.name for each in (await client.list_tools()).tools] == ["sign_in"]


async def test_only_a_browser_that_has_seen_the_page_can_confirm_it(opened: Opened) -> None:
    """A site that Bob visits sends Eve's form from his browser, where he is signed in and has allowed it before."""
    async with opened() as door:
        refused: list[httpx2.Response] = []
        pages: list[str] = []

        async def sent_by_another_site(_ctx: object, params: Any) -> types.ElicitResult:
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as eves, httpx2.AsyncClient(timeout=30) as bobs:
                form = confirmed((await eves.get(params.url)).text)
                refused.append(await bobs.post(params.url, data=form))
                pages.append((await bobs.get(params.url)).text)  # Bob looks at it after all
                refused.append(await bobs.post(params.url, data=form))
                refused.append(await bobs.post(params.url, data=confirmed(pages[0]) | {"me": ""}))
            return types.ElicitResult(action="decline")

        async with client_of(door, "eve", sent_by_another_site, "legacy") as client:
            assert (await client.call_tool("sign_in", {})).is_error
        assert [each.status_code for each in refused] == [400, 400, 400]
        assert not [each for each in refused if "location" in each.headers]
        assert "was not opened in this browser" in refused[0].text
        assert "confirm that it is you" in refused[2].text
        assert "<b>eve</b> has asked this gateway for a connection to personal" in pages[0]
        assert re.search(r"You will sign in at <b>127\.0\.0\.1:\d+</b>", pages[0])


async def test_pages_of_no_sign_in_say_so(opened: Opened) -> None:
    async with opened() as door:
        base = door.removesuffix("/mcp")
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            for path, status in (("/oauth/sign-in/unknown", 404), ("/oauth/callback?state=x&code=y", 400)):
                answer = await http.get(f"{base}{path}")
                assert answer.status_code == status
                assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_a_browser_may_be_in_two_sign_ins_at_once() -> None:
    base, names = "https://gate.example", ("tickets", "wiki")
    returns = BrowserReturns(lambda: base)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = await sign_in_pages.form(receive) if scope["method"] == "POST" else b""
        await sign_in_pages.answer(scope, returns, body)(scope, receive, send)

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=base) as browser:
        for name in names:
            waiting, target = returns.begun(name), f"https://login.example/authorize?state=of-{name}"
            assert waiting is not None
            waiting.expect(target)
            url = returns.page(waiting, name, "ann", target)
            assert (await browser.post(url, data=confirmed((await browser.get(url)).text))).status_code == 303
        ends = [await browser.get(f"/oauth/callback?state=of-{name}&code=c") for name in names]
    assert [f"You are signed in to {name}" in end.text for name, end in zip(names, ends, strict=True)] == [True, True]


@pytest.mark.parametrize("mark", ["", "f00d"])
async def test_the_address_of_a_page_has_no_part_that_proxies_take_for_a_hidden_file(mark: str) -> None:
    returns = BrowserReturns(lambda: "https://gate.example", mark)
    waiting = returns.begun("wiki")
    assert waiting is not None

    url = returns.page(waiting, "wiki", "ann", "https://login.example/authorize?state=s")

    assert "/." not in url
    assert sign_in_pages.mark({"type": "http", "path": url.removeprefix("https://gate.example")}) == mark
