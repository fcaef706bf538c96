"""Servers that are connected for each user alone, with tokens got in exchange for the callers' own (RFC 8693)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from mcp_types import (
    ClientCapabilities,
    ErrorData,
    ListRootsRequest,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)

from doors import Raw, until_listed
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.client_input import ClientOrigin
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.testing import FakeClock
from pegboard.upstreams import Upstream
from pegboard.upstreams.oauth import token_exchange
from pegboard.upstreams.oauth.bearer_auth import RETRY_SECONDS
from pegboard.upstreams.oauth.challenges import TokenNotRenewed
from pegboard.upstreams.oauth.sign_ins import credential_key
from pegboard.upstreams.oauth.token_exchange import ExchangedAuth, ExchangedToken, SubjectToken, SubjectTokens
from processes import listening, until
from signers import AUTHORIZATION, RESOURCE, control
from upstream_specs import scripted

pytestmark = pytest.mark.requirement("023.users")

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

GATEWAY = "http://127.0.0.1:7332/mcp"
OF_ANN = re.compile(r"(\b|_)ann\b")
SECRET = "exchange-secret"
NEEDS = {"add_page": "write"}
"""The scope that a tool of the server needs."""


@pytest.fixture
def authorization() -> Iterator[str]:
    with listening(AUTHORIZATION, json.dumps({"clients": {"resource": "resource", "gateway": SECRET}})) as url:
        yield url


@pytest.fixture
def personal(authorization: str) -> Iterator[str]:
    with listening(RESOURCE, json.dumps({"issuer": authorization, "personal": True})) as url:
        yield url


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(params=[False, True], ids=["legacy", "modern"])
def modern(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@dataclass
class Users:
    """Clients of a gateway before a personal server."""

    http: httpx2.AsyncClient
    url: str
    host: Host
    issuer: str
    modern: bool = False

    async def token(self, user: str) -> str:
        said = await control(self.issuer, issue={"user": user, "resource": GATEWAY})
        return str(said["tokens"][-1])

    async def client(self, user: str = "", *, token: str = "", **headers: str) -> Raw:
        shown = {"authorization": f"Bearer {token or await self.token(user)}"} | headers
        raw = Raw(self.http, self.url, modern=self.modern, headers=shown)
        raw = raw if self.modern else await raw.begin()
        if user:
            await until_listed(raw, user)
        return raw


def exchanging(personal: str, issuer: str, **more: Any) -> ServerSpec:
    oauth = {"grant": "token_exchange", "client_id": "gateway", "client_secret": SECRET}
    oauth |= {"token_endpoint": f"{issuer}/token"}
    return ServerSpec.model_validate(
        {"name": "personal", "url": f"{personal}/mcp", "per_user": True, "oauth": oauth} | more
    )


@pytest.fixture
def opened(
    open_door: OpenDoor,
    http: httpx2.AsyncClient,
    authorization: str,
    personal: str,
    modern: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., AbstractAsyncContextManager[Users]]:
    monkeypatch.setenv("INTROSPECTION", "resource")

    @asynccontextmanager
    async def users(*specs: ServerSpec, **options: Any) -> AsyncIterator[Users]:
        issuer = {
            "url": authorization,
            "resource": GATEWAY,
            "introspection_uri": f"{authorization}/introspect",
            "client_id": "resource",
            "client_secret_env": "INTROSPECTION",
        }
        specs = specs or (scripted(), exchanging(personal, authorization))
        async with open_door(*specs, **({"issuer": issuer, "exposure": "eager"} | options)) as (url, host):
            yield Users(http, url, host, authorization, modern)

    return users


async def test_each_user_is_listed_and_answered_their_own(opened: Any, personal: str) -> None:
    async with opened() as users:
        ann, bob = await users.client("ann"), await users.client("bob")
        assert {"echo", "diary_of_ann", "whose"} <= set(await ann.names())
        assert {"echo", "diary_of_bob", "whose"} <= set(await bob.names())
        assert not [name for name in await ann.names() if "bob" in name]
        assert not [name for name in await bob.names() if "ann" in name]
        for _ in range(3):
            assert await ann.call("whose") == "ann"
            assert await bob.call("whose") == "bob"
        assert await ann.call("echo", text="shared") == "shared"
        asked = (await control(personal))["asked"]
        assert asked["list ann"] + asked["list bob"] <= 4  # with each connection, and when it is listened to


async def test_nothing_of_one_user_is_found_by_another(opened: Any) -> None:
    async with opened() as users:
        await users.client("ann")
        bob = await users.client("bob")
        found = await bob.ask("search_tools", query="the secret diary of ann", limit=20)
        assert "_of_bob" in json.dumps(found)
        texts = [
            json.dumps(found["tools"]),
            json.dumps(await bob.ask("list_tool_categories")),
            json.dumps(await bob.result("tools/call", name="describe_tools", arguments={"names": ["diary_of_ann"]})),
            json.dumps(await bob.result("resources/list")),
            json.dumps(await bob.result("prompts/list")),
        ]
        assert "diary://bob/today" in texts[3]
        assert "greet_bob" in texts[4]
        texts[2] = texts[2].replace("diary_of_ann", "")  # bob's own question
        assert not [text for text in texts if OF_ANN.search(text)]
        for name in ("diary_of_ann", "personal__diary_of_ann"):
            refused = await bob.result("tools/call", name=name, arguments={})
            nobodys = name.replace("ann", "zoe")
            unknown = await bob.result("tools/call", name=nobodys, arguments={})
            assert refused["isError"]
            assert refused["content"][0]["text"].replace(name, nobodys) == unknown["content"][0]["text"]
        read = await bob.result("resources/read", uri="diary://bob/today")
        assert read["contents"][0]["text"] == "read by bob"


async def test_a_list_stored_for_one_user_is_not_shown_to_another(opened: Any, personal: str) -> None:
    """The stored lists of an earlier process are there before any connection."""
    async with opened() as users:
        await users.client("ann")
    async with opened() as users:
        bob, ann = await users.client("bob"), await users.client(token=await users.token("ann"))
        assert not [name for name in await bob.names() if "ann" in name]
        assert "diary_of_ann" in await ann.names()
        assert (await control(personal))["asked"]["list ann"] <= 2  # from the store, without a second connection


async def test_a_session_of_one_user_is_not_anothers(opened: Any, modern: bool) -> None:
    async with opened() as users:
        ann = await users.client("ann")
        stolen = Raw(
            users.http, users.url, modern=modern, headers={"authorization": f"Bearer {await users.token('eve')}"}
        )
        stolen.session = ann.session
        if modern:
            stolen.headers["x-pegboard-session"] = "annes"
            ann.headers["x-pegboard-session"] = "annes"
            assert await ann.call("whose") == "ann"
            assert await stolen.call("whose") == "eve"
        else:
            answer = await stolen.post("tools/call", {"name": "whose", "arguments": {}})
            assert answer.status == 404
            assert await ann.call("whose") == "ann"


async def test_no_header_names_another_user(opened: Any) -> None:
    smuggled = (
        "x-user",
        "x-forwarded-user",
        "x-remote-user",
        "x-pegboard-user",
        "forwarded",
        "x-forwarded-access-token",
    )
    async with opened() as users:
        await users.client("ann")
        eve = await users.client("eve", **dict.fromkeys(smuggled, "ann"))
        assert await eve.call("whose") == "eve"
        token = await users.token("ann")
        both = [("authorization", eve.headers["authorization"]), ("authorization", f"Bearer {token}")]
        assert (await users.http.post(users.url, json={}, headers=both)).status_code == 400
        meta = {"user": "ann", "authorization": f"Bearer {token}", "progressToken": "t"}
        result = await eve.result("tools/call", name="whose", arguments={"user": "ann"}, _meta=meta)
        assert result["content"][0]["text"] == "eve"


@pytest.mark.parametrize("modern", [False], ids=["legacy"])  # there are no streams of sessions in 2026-07-28
async def test_only_the_user_whose_list_changed_hears_of_it(opened: Any) -> None:
    async with opened(pins="warn") as users:  # for a team, a tool that comes later would wait for an approval
        ann, bob = await users.client("ann"), await users.client("bob")
        async with ann.stream() as heard_by_ann, bob.stream() as heard_by_bob:
            for _ in range(100):  # the connection may begin to listen only after it is ready
                assert await ann.call("add_page") == "ann"
                if "notifications/tools/list_changed" in heard_by_ann:
                    break
                await asyncio.sleep(0.1)
            assert "notifications/tools/list_changed" in heard_by_ann
            assert "page_0_of_ann" in await ann.names()
            assert "page_0_of_ann" not in await bob.names()
            assert heard_by_bob == []


async def test_a_configured_token_with_a_subjects_name_is_another_user(opened: Any) -> None:
    async with opened(access={"ann": {"hash": hashed("key-of-ann")}}) as users:
        await users.client("ann")
        other = await users.client(token="key-of-ann")
        assert not [name for name in await other.names() if "ann" in name]
        said = await other.result("tools/call", name="sign_in", arguments={})
        assert said["isError"]
        assert "a current token of the issuer" in said["content"][0]["text"]


async def test_a_renewed_token_is_exchanged_again(opened: Any, authorization: str) -> None:
    async with opened() as users:
        first = await users.client("ann")
        assert await first.call("whose") == "ann"
        again = await users.client(token=await users.token("ann"))
        assert await again.call("whose") == "ann"
        forms = [each for each in (await control(authorization))["forms"] if "subject_token" in each]
        assert len({each["subject_token"] for each in forms}) == 2
        assert {each["resource"] for each in forms} == {forms[0]["resource"]}


async def test_each_client_of_a_user_acts_with_its_own_token(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them may have fewer rights."""
    got: dict[str, str] = {}
    used: list[tuple[str, str]] = []
    exchanged, sign = ExchangedAuth._exchanged, token_exchange.sign

    async def noted(auth: ExchangedAuth, subject: SubjectToken, scopes: tuple[str, ...]) -> ExchangedToken | None:
        made = await exchanged(auth, subject, scopes)
        got[made.token if made else ""] = subject.token
        return made

    def signed(request: httpx2.Request, token: str) -> str:
        if b'"tools/call"' in request.content:
            used.append((json.loads(request.content)["params"]["arguments"]["by"], got[token]))
        return sign(request, token)

    monkeypatch.setattr(ExchangedAuth, "_exchanged", noted)
    monkeypatch.setattr(token_exchange, "sign", signed)
    async with opened() as users:
        tokens = [await users.token("ann"), await users.token("ann")]
        clients = [await users.client(token=token) for token in tokens]
        await until_listed(clients[0], "ann")
        calls = [client.call("whose", by=token) for client, token in zip(clients, tokens, strict=True) for _ in "abcd"]
        assert set(await asyncio.gather(*calls)) == {"ann"}
    assert sorted(used) == sorted((token, token) for token in tokens * 4)
    assert len(got) == 2


async def test_calls_that_wait_for_an_exchange_end_with_it_if_the_endpoint_is_silent(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def silent(*_asked: object) -> httpx2.Response:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        raise httpx2.ReadTimeout("")

    spec = exchanging("https://personal.example", "https://login.example")
    subjects = SubjectTokens()
    subjects.put("ann", "anns")
    auth = ExchangedAuth(credential_key(spec, "ann"), subjects, clock, spec.oauth or OAuthSettings())
    monkeypatch.setattr(auth, "_asked", silent)

    async def called() -> bool:
        with pytest.raises(TokenNotRenewed):
            await anext(auth.async_auth_flow(httpx2.Request("POST", spec.url or "")))
        return True

    assert all(await asyncio.gather(*(called() for _ in range(8))))
    assert asked == 1
    clock.advance(RETRY_SECONDS)
    assert await called()
    assert asked == 2


async def test_a_call_that_is_given_up_during_an_exchange_keeps_no_other_from_it(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses the first token before its end; the endpoint is slow to give another."""
    asked, slow = 0, asyncio.Event()

    async def answered(*_asked: object) -> httpx2.Response:
        nonlocal asked
        asked += 1
        if asked == 2:
            slow.set()
            await asyncio.Event().wait()
        return httpx2.Response(200, json={"access_token": f"token {asked}", "token_type": "Bearer"})

    spec = exchanging("https://personal.example", "https://login.example")
    subjects = SubjectTokens()
    subjects.put("ann", "anns")
    auth = ExchangedAuth(credential_key(spec, "ann"), subjects, clock, spec.oauth or OAuthSettings())
    monkeypatch.setattr(auth, "_asked", answered)

    async def called() -> str:
        flow = auth.async_auth_flow(httpx2.Request("POST", spec.url or ""))
        assert (await anext(flow)).headers["authorization"] == "Bearer token 1"
        return str((await flow.asend(httpx2.Response(401))).headers["authorization"])

    given_up = asyncio.create_task(called())
    await slow.wait()
    given_up.cancel()
    await asyncio.wait([given_up])
    assert await called() == "Bearer token 3"


async def test_what_one_user_is_listed_first_is_no_change_for_another(opened: Any) -> None:
    async with opened(pins="quarantine") as users:
        ann, bob = await users.client("ann"), await users.client("bob")
        assert await ann.call("whose") == "ann"
        assert await bob.call("diary_of_bob") == "bob"


async def test_idle_users_leave_and_come_back(opened: Any) -> None:
    async with opened(users={"most": 2, "idle": 3600}) as users:
        clients = [await users.client(name) for name in ("ann", "bob", "eve")]
        assert len(users.host.users) == 2  # ann made room
        assert [await client.call("whose") for client in clients] == ["ann", "bob", "eve"]
        assert len(users.host.users) == 2


async def test_a_connection_ends_when_it_is_idle_and_opens_with_the_next_call(opened: Any, personal: str) -> None:
    async with opened(users={"idle": 0.5}) as users:
        ann = await users.client("ann")
        board = users.host.users.board(next(iter(users.host.users._boards)))
        with board.in_use():
            [upstream] = board.servers.own
            await until(lambda: upstream.status.state == "idle")
            assert "diary_of_ann" in await ann.names()
            assert await ann.call("whose") == "ann"
            assert (await control(personal))["asked"]["list ann"] >= 2
        await until(lambda: not len(users.host.users))
        assert await ann.call("whose") == "ann"


async def test_a_user_who_rests_has_neither_a_connection_nor_an_endpoint_and_the_next_call_makes_both(
    opened: Any, authorization: str, personal: str, modern: bool
) -> None:
    async with opened(users={"rest": 0.2}) as users:
        ann = await users.client("ann")
        assert await ann.call("whose") == "ann"
        [board] = users.host.users._boards.values()
        [upstream] = board.servers.own
        await until(lambda: upstream.status.state == "idle")
        if modern:  # a client with a session keeps it
            await until(lambda: not board.endpoints)
        for _ in range(2):
            assert "diary_of_ann" in await ann.names()
            assert await ann.call("whose") == "ann"
            await until(lambda: upstream.status.state == "idle")
        assert bool(board.endpoints) is not modern
        forms = [each for each in (await control(authorization))["forms"] if "subject_token" in each]
        assert len(forms) == 1, "later connections use the token that the first one got"


@pytest.mark.parametrize("modern", [True], ids=["modern"])
async def test_a_request_that_has_its_answer_is_not_kept_by_the_connection_that_carried_it(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK keeps the context of the last message, in which the request is: its headers, and so the user's token."""
    made: list[ClientOrigin] = []

    def kept(*given: Any, **named: Any) -> ClientOrigin:
        made.append(ClientOrigin(*given, **named))
        return made[-1]

    monkeypatch.setattr("pegboard.gateways.mcp.transport.call_handler.ClientOrigin", kept)
    async with opened() as users:
        ann = await users.client("ann")
        assert await ann.call("whose") == "ann"
        assert [each._ctx for each in made] == [None]
        assert made[0].capabilities == ClientCapabilities()
        await made[0].progress(1.0, None, "too late")
        await made[0].tell(LoggingMessageNotification(params=LoggingMessageNotificationParams(level="error", data="x")))
        refused = await made[0].ask(ListRootsRequest())
        assert isinstance(refused, ErrorData)


@pytest.mark.requirement("023.step-up")
@pytest.mark.parametrize("modern", [True], ids=["modern"])
async def test_a_wider_token_is_exchanged_for_once_when_the_server_asks_for_more_scopes(
    opened: Any, authorization: str
) -> None:
    with listening(RESOURCE, json.dumps({"issuer": authorization, "personal": True, "needs": NEEDS})) as url:
        async with opened(exchanging(url, authorization)) as users:
            ann = await users.client("ann")
            assert await ann.call("whose") == "ann"
            assert await asyncio.gather(*(ann.call("add_page") for _ in range(5))) == ["ann"] * 5
            assert await ann.call("whose") == "ann"
        forms = [each for each in (await control(authorization))["forms"] if "subject_token" in each]
        assert [each.get("scope", "") for each in forms] == ["", "write"]


@pytest.mark.requirement("023.step-up")
@pytest.mark.parametrize("modern", [True], ids=["modern"])
async def test_scopes_that_an_exchange_does_not_give_are_named_and_not_asked_for_again(
    opened: Any, authorization: str, caplog: pytest.LogCaptureFixture
) -> None:
    await control(authorization, kept_back=["write"])
    with listening(RESOURCE, json.dumps({"issuer": authorization, "personal": True, "needs": NEEDS})) as url:
        async with opened(exchanging(url, authorization)) as users:
            ann = await users.client("ann")
            for _ in range(3):
                said = await ann.result("tools/call", name="add_page", arguments={})
                assert said["isError"]
                assert "asks for more rights than its authorization server gives" in said["content"][0]["text"]
                assert "write" in said["content"][0]["text"]
                assert "pegboard login" not in said["content"][0]["text"]
            assert await ann.call("whose") == "ann"  # the token with fewer scopes is used still
        forms = [each for each in (await control(authorization))["forms"] if "subject_token" in each]
        assert [each.get("scope", "") for each in forms] == ["", "write"]
    assert "a token was not exchanged: status 400" in caplog.text


@pytest.mark.requirement("023.shared")
async def test_a_users_connection_keeps_nothing_of_the_request_that_opened_it(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that began in the request's context would keep its headers, and so its token, as long as it runs."""
    seen: dict[str, int] = {}
    run = Upstream.run

    async def watched(upstream: Upstream) -> None:
        if upstream.user:
            seen[upstream.user] = len(copy_context())
        await run(upstream)

    monkeypatch.setattr(Upstream, "run", watched)
    async with opened() as users:
        ann = await users.client("ann")
        assert await ann.call("whose") == "ann"
    assert list(seen.values()) == [0]


async def test_callers_without_identity_are_told_what_to_do(open_door: OpenDoor, http: httpx2.AsyncClient) -> None:
    spec = ServerSpec(name="personal", url="http://127.0.0.1:9/mcp", per_user=True)
    async with open_door(spec, host="0.0.0.0", exposure="eager") as (url, _):  # noqa: S104
        client = Raw(http, url, modern=True)
        assert await client.names() == ["sign_in"]
        said = await client.result("tools/call", name="sign_in", arguments={})
        assert said["isError"]
        assert "[access] or [issuer]" in said["content"][0]["text"]


async def test_one_person_on_this_machine_has_one_connection(open_door: OpenDoor, personal: str) -> None:
    async with open_door(ServerSpec(name="personal", url=f"{personal}/mcp", per_user=True)) as (_, host):
        await until(lambda: host.fleet.status()[0].state == "signed_out")
        assert "pegboard login personal" in host.fleet.status()[0].reason
