"""Bearer tokens on HTTP: who is let in, what a token opens by every way in, and whose sessions are whose."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from doors import META, Raw
from pegboard import Settings
from pegboard.errors import ConfigError
from pegboard.events import Event
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.call_results import CallResults
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.auth import Access, Holder, InvalidRequest, Unauthorized
from pegboard.gateways.mcp.transport.client_connection import named_session
from pegboard.gateways.users import of_subject, of_token
from pegboard.results.result_shaper import owner_mark
from pegboard.settings.server_spec import ServerSpec
from upstream_specs import scripted

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

TALKATIVE = str(Path(__file__).parents[2] / "servers" / "talkative.py")
TOKENS = {name: f"pgb_{name}-9f3b7c-secret" for name in ("ann", "bob", "root", "ops")}
ACCESS: dict[str, Any] = {
    "ann": {"hash": hashed(TOKENS["ann"]), "tools": ["scripted/echo", "add"]},
    "bob": {"hash": hashed(TOKENS["bob"]), "scopes": ["dig"], "tools": []},
    "root": {"hash": hashed(TOKENS["root"]), "scopes": ["admin"], "tools": ["*"]},
    "ops": {"hash": hashed(TOKENS["ops"]), "scopes": ["ops", "dig"]},
}
GRANTS = {"dig": ["scripted/odd"]}
RULES = [{"tools": "scripted/environment", "scope": "admin"}]
EVERY = {"access": ACCESS, "grants": GRANTS, "rules": RULES}


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(params=[False, True], ids=["legacy", "modern"])
def modern(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


async def client_of(http: httpx2.AsyncClient, url: str, name: str, modern: bool = False, **more: str) -> Raw:
    raw = Raw(http, url, modern=modern, headers=bearer(name) | more)
    return raw if modern else await raw.begin()


@pytest.mark.parametrize(
    ("shown", "status", "challenge"),
    [
        ([], 401, 'Bearer realm="pegboard"'),
        ([("authorization", "Basic YTpi")], 401, 'Bearer realm="pegboard"'),
        ([("x-pegboard-key", TOKENS["ann"])], 401, 'Bearer realm="pegboard"'),
        ([("authorization", "Bearer nobody")], 401, 'Bearer realm="pegboard", error="invalid_token"'),
        ([("authorization", f"Bearer {hashed(TOKENS['ann'])}")], 401, 'Bearer realm="pegboard", error="invalid_token"'),
        ([("authorization", "Bearer")], 400, 'Bearer realm="pegboard", error="invalid_request"'),
        (
            [("authorization", "Bearer a"), ("authorization", "Bearer b")],
            400,
            'Bearer realm="pegboard", error="invalid_request"',
        ),
    ],
)
async def test_who_shows_no_known_token_is_challenged(
    open_door: OpenDoor, http: httpx2.AsyncClient, shown: list[tuple[str, str]], status: int, challenge: str
) -> None:
    async with open_door(**EVERY) as (url, _):
        for address in (url, f"{url}/nowhere", f"{url}?access_token={TOKENS['ann']}"):
            for method in ("POST", "GET", "DELETE"):
                answer = await http.request(method, address, headers=shown, json={})
                assert (answer.status_code, answer.headers["www-authenticate"]) == (status, challenge)
                assert {"error", "message", "remedy"} <= answer.json().keys()


@pytest.mark.requirement("M2")
@pytest.mark.requirement("M3")
async def test_a_token_opens_its_tools_and_no_others_by_every_way_in(
    open_door: OpenDoor, http: httpx2.AsyncClient, modern: bool
) -> None:
    async with open_door(exposure="eager", **EVERY) as (url, _):
        for name, opened in (("ann", {"echo", "add"}), ("bob", {"odd"}), ("ops", {"odd"})):
            client = await client_of(http, url, name, modern)
            assert set(await client.names()) == opened
            assert set(await client.search("echo a text, add numbers, environment, odd arguments", limit=20)) == opened
            categories = await client.ask("list_tool_categories")
            assert sum(each["tools"] for each in categories["categories"]) == len(opened)
            assert set((await client.ask("list_tool_categories", category="scripted"))["tools"]) == opened
            described = await client.ask("describe_tools", names=["echo", "odd", "environment"])
            assert {each["name"] for each in described["tools"]} == opened & {"echo", "odd", "environment"}
            for other in ("environment", "scripted/environment", "fails"):
                for result in (
                    await client.result("tools/call", name=other, arguments={"name": "HOME"}),
                    await client.result("tools/call", name="invoke_tool", arguments={"name": other}),
                    await client.result("tools/call", name="execute_tool", arguments={"name": other}),
                ):
                    assert result["isError"]
                    assert json.loads(result["content"][0]["text"])["error"] == "tool_not_available"
            subtask = {"text": "return an environment variable"}
            routed = await client.result("tools/call", name="route_tools", arguments={"subtask": subtask})
            assert "environment" not in {each["name"] for each in json.loads(routed["content"][0]["text"])["tools"]}
        ann = await client_of(http, url, "ann", modern)
        assert await ann.call("echo", text="x") == "x"
        assert await ann.call("invoke_tool", name="scripted/echo", arguments={"text": "y"}) == "y"


async def test_what_a_token_does_not_open_is_in_no_summary(
    open_door: OpenDoor, http: httpx2.AsyncClient, modern: bool
) -> None:
    async with open_door(scripted(), scripted("twin"), **EVERY) as (url, _):
        client = await client_of(http, url, "ann", modern)
        listed = await client.result("tools/list")
        assert [tool["name"] for tool in listed["tools"]] == META
        assert "environment" not in json.dumps(listed)


async def test_rules_ask_for_the_scopes_of_the_token_and_not_of_the_process(
    open_door: OpenDoor, http: httpx2.AsyncClient, modern: bool
) -> None:
    access = ACCESS | {"plain": {"hash": hashed("plain"), "tools": ["*"]}}
    async with open_door(exposure="eager", scopes=["admin"], **(EVERY | {"access": access})) as (url, _):
        root = await client_of(http, url, "root", modern)
        assert await root.call("environment", name="PEGBOARD_NEVER_SET") == "unset"
        plain = Raw(http, url, modern=modern, headers={"authorization": "Bearer plain"})
        plain = plain if modern else await plain.begin()
        assert "environment" not in await plain.names()
        assert "echo" in await plain.names()


async def test_a_session_is_of_the_token_that_began_it(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door(**EVERY) as (url, host):
        ann = await client_of(http, url, "ann")
        assert ann.session is not None
        await ann.search("echo")
        for thief in ("bob", "root"):
            stolen = Raw(http, url, session=ann.session, headers=bearer(thief))
            assert (await stolen.post("tools/list", {})).status == 404
            assert (await stolen.post("tools/call", {"name": "echo", "arguments": {"text": "x"}})).status == 404
            headers = bearer(thief) | {"mcp-session-id": ann.session, "accept": "text/event-stream"}
            assert (await http.get(url, headers=headers)).status_code == 404
            assert (await http.delete(url, headers=headers)).status_code == 404
        for made_up in (ann.session.partition(".")[0], f"{ann.session}0", "x", "."):
            assert (await Raw(http, url, session=made_up, headers=bearer("ann")).post("tools/list", {})).status == 404
        assert (await http.get(url, headers={"mcp-session-id": ann.session})).status_code == 401
        assert await ann.call("echo", text="still") == "still"
        assert await host.gateway().book.find(ann.session) is not None


async def test_a_session_goes_on_with_its_token_after_a_restart_and_with_no_other(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door(**EVERY) as (url, _):
        ann = await client_of(http, url, "ann")
        await ann.search("echo a text")
        before = await ann.names()
    async with open_door(**EVERY) as (url, _):
        stolen = Raw(http, url, session=ann.session, headers=bearer("root"))
        assert (await stolen.post("tools/list", {})).status == 404
        ann.url = url
        assert await ann.names() == before


async def test_sessions_that_two_holders_call_alike_are_two(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    named = {"x-pegboard-session": "work"}
    async with open_door(**EVERY) as (url, host):
        for name in ("ann", "root"):
            client = await client_of(http, url, name, modern=True, **named)
            await client.call("echo", text=name)
        book = host.gateway().book
        assert all([await book.find(f"named:token:{len(name)}:{name}:work") for name in ("ann", "root")])
        assert await book.find("named:work") is None


async def test_a_toolset_may_need_a_scope(open_door: OpenDoor, http: httpx2.AsyncClient, modern: bool) -> None:
    toolsets = {"ops": {"tools": ["scripted/*"], "scope": "ops"}}
    async with open_door(toolsets=toolsets, **EVERY) as (url, _):
        answer = await Raw(http, f"{url}/ops", modern=modern, headers=bearer("root")).post("tools/list", {})
        assert answer.status == 403
        assert answer.headers["www-authenticate"] == (
            'Bearer realm="pegboard", error="insufficient_scope", scope="ops"'
        )
        client = await client_of(http, f"{url}/ops", "ops", modern)
        assert await client.search("odd") == ["odd"], "and it opens no more there than anywhere"


@pytest.mark.requirement("M25")
async def test_lists_that_go_by_the_token_are_for_no_shared_cache(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door(exposure="eager", **EVERY) as (url, _):
        for name in ("ann", "root"):
            answer = await (await client_of(http, url, name, modern=True)).post("tools/list", {})
            assert answer.message["result"]["cacheScope"] == "private"
            assert "public" not in answer.headers.get("cache-control", "")


async def test_the_sdks_client_of_each_era_is_served_with_its_token(open_door: OpenDoor) -> None:
    async with open_door(exposure="eager", **EVERY) as (url, _):
        for mode in ("auto", "legacy"):
            async with (
                httpx2.AsyncClient(trust_env=False, headers=bearer("ann")) as http,
                Client(streamable_http_client(url, http_client=http), mode=mode) as client,
            ):
                assert {tool.name for tool in (await client.list_tools()).tools} == {"echo", "add"}


async def test_names_of_servers_that_are_not_ready_are_for_those_who_may_use_them(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    broken = scripted("vault", connect_timeout=1).model_copy(update={"args": ("-c", "raise SystemExit(1)")})
    async with open_door(scripted(), broken, **EVERY) as (url, _):
        for name, told in (("bob", False), ("root", True)):
            found = await (await client_of(http, url, name)).ask("search_tools", query="dig")
            assert ("vault" in found.get("servers_not_ready", {})) is told


async def test_a_page_from_elsewhere_is_refused_with_any_token(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door(**EVERY) as (url, _):
        for header, value, status in (("host", "evil.example", 421), ("origin", "https://evil.example", 403)):
            raw = Raw(http, url, modern=True, headers=bearer("root") | {header: value})
            assert (await raw.post("tools/list", {})).status == status


async def test_the_health_says_no_more_than_that_where_tokens_are_needed(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    async with open_door(**EVERY) as (url, _):
        assert (await http.get(url.removesuffix("/mcp") + "/healthz")).json() == {"status": "ok"}


async def test_tokens_are_followed_while_the_gateway_runs(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    async with open_door(**EVERY) as (url, host):
        ann = await client_of(http, url, "ann")
        without = {name: each for name, each in host.settings.access.items() if name != "ann"}
        await host.reconfigure(host.settings.model_copy(update={"access": without}))
        assert (await ann.post("tools/list", {})).status == 401


@pytest.mark.requirement("M30")
async def test_no_token_is_in_a_log_an_answer_or_a_representation(
    open_door: OpenDoor, http: httpx2.AsyncClient, events: Any
) -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(lambda record: not record.name.startswith(("httpx2", "httpcore2", "asyncio")))
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    said = []
    try:
        async with open_door(**EVERY) as (url, host):
            for name in TOKENS:
                client = await client_of(http, url, name)
                said.append(json.dumps(await client.result("tools/call", name="fails", arguments={})))
                thief = Raw(http, url, session=client.session, headers={"authorization": f"Bearer {TOKENS[name]}x"})
                said.append(json.dumps((await thief.post("tools/list", {})).message))
            shown = [(b"authorization", bearer("ann")["authorization"].encode())]
            said += [repr(host.settings), repr(await host.access.holder(shown))]
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    kept = "\n".join(
        [stream.getvalue(), *said, *(json.dumps(each.as_dict(), default=str) for each in events.of(Event))]
    )
    assert kept.strip()
    assert not [name for name, token in TOKENS.items() if token in kept]


async def test_a_token_may_come_from_a_variable() -> None:
    settings = Settings(access={"ci": {"env": "CI_TOKEN", "tools": ["a/*"]}})

    access = Access(settings, {"CI_TOKEN": " from-ci \n"})

    holder = await access.holder([(b"Authorization", b"bearer from-ci")])
    assert holder is not None
    assert (holder.name, holder.only, holder.may_see("a"), holder.may_see("b")) == ("ci", ("a/*",), True, False)
    assert "from-ci" not in repr(holder) + repr(settings)
    with pytest.raises(ConfigError, match="'CI_TOKEN', which is not set"):
        Access(settings, {})


def test_two_tokens_cannot_be_the_same() -> None:
    twice = Settings(access={name: {"hash": hashed("x")} for name in ("a", "b")})

    with pytest.raises(ConfigError, match="'a' and 'b' are the same"):
        Access(twice)


@pytest.mark.parametrize("given", [{}, {"hash": hashed("x"), "env": "X"}])
def test_a_token_is_said_in_one_way(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="either hash or env"):
        Settings(access={"a": given})


@pytest.mark.parametrize(
    ("tools", "scopes", "grants", "only"),
    [
        (None, (), {}, None),
        (None, ("dig",), {"dig": ("a/*",)}, ("a/*",)),
        (None, (), {"dig": ("a/*",)}, ()),
        (("b",), ("dig",), {"dig": ("a/*",)}, ("b", "a/*")),
        ((), (), {}, ()),
    ],
)
async def test_a_token_opens_its_own_patterns_and_those_of_its_scopes(
    tools: Any, scopes: Any, grants: Any, only: Any
) -> None:
    access = Access(Settings(access={"a": {"hash": hashed("x"), "tools": tools, "scopes": scopes}}, grants=grants))

    assert (await access.holder([(b"authorization", b"Bearer x")])).only == only  # type: ignore[union-attr]


async def test_where_no_token_is_configured_none_is_asked_for() -> None:
    access = Access(Settings())

    assert not access.needed
    assert await access.holder([(b"authorization", b"Bearer anything")]) is None


def test_credentials_that_cannot_be_read_are_no_token_that_is_known() -> None:
    assert issubclass(InvalidRequest, Unauthorized)


@pytest.mark.requirement("M2")
async def test_resources_and_prompts_are_for_tokens_that_open_every_tool_of_their_server(
    open_door: OpenDoor, http: httpx2.AsyncClient
) -> None:
    specs = [ServerSpec(name=era, command=sys.executable, args=(TALKATIVE, era)) for era in ("legacy", "modern")]
    opened = {"ann": ["legacy/*", "modern/echo"], "bob": ["modern"], "root": ["*"]}
    access = {name: {"hash": hashed(TOKENS[name]), "tools": tools} for name, tools in opened.items()}
    async with open_door(*specs, access=access) as (url, _):
        ann, bob, root = [await client_of(http, url, name) for name in ("ann", "bob", "root")]

        async def uris(client: Raw) -> set[str]:
            return {each["uri"].split("/")[2] for each in (await client.result("resources/list"))["resources"]}

        async def codes(client: Raw, uri: str) -> list[int]:
            asked = [await client.post(f"resources/{what}", {"uri": uri}) for what in ("read", "subscribe")]
            return [each.message.get("error", {}).get("code", 0) for each in asked]

        assert [await uris(each) for each in (ann, bob, root)] == [{"legacy"}, set(), {"legacy", "modern"}]
        assert await codes(root, "note://modern/note") == [0, 0], "from here on it is watched for somebody"
        assert 0 not in await codes(ann, "note://modern/note")
        assert 0 not in await codes(bob, "note://legacy/note")
        assert await codes(ann, "note://legacy/note") == [0, 0]
        prompts = [await each.result("prompts/list") for each in (ann, bob, root)]
        names = [[prompt["name"] for prompt in each["prompts"]] for each in prompts]
        assert not names[1]
        assert len(names[2]) == 2 * len(names[0])
        foreign = next(name for name in names[2] if name not in names[0])
        assert "error" in (await ann.post("prompts/get", {"name": foreign})).message


def test_a_token_and_a_subject_of_one_name_share_no_session_and_no_result() -> None:
    token = Holder(name="alice", secret="1", user=of_token("alice"))
    subject = Holder(name="alice", secret="2", user=of_subject("https://issuer.example", "alice"))
    shaper: Any = SimpleNamespace(adopt=lambda settings: None)
    owner = CallResults(Settings(), shaper)._owner

    assert named_session("work", token) != named_session("work", subject)
    assert owner(Caller(holder=token)) != owner(Caller(holder=subject))
    assert owner(Caller(holder=token)) == owner_mark("key", "alice")


def test_no_name_of_a_session_makes_it_that_of_another_holder() -> None:
    app, branch = Holder(name="repo:org/app", secret="1"), Holder(name="repo:org/app:main", secret="2")
    assert named_session("main:x", app) != named_session("x", branch)
