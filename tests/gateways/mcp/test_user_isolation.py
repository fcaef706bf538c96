"""Two users at once, whom one server of the SDK answers: nothing that one does, asks or hears is the other's.

Their clients number requests alike, so that whatever goes by a number alone would be mixed up.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.users import of_token
from pegboard.settings.server_spec import ServerSpec
from processes import listening, until

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]

SERVER = str(Path(__file__).parents[2] / "servers" / "by_session.py")
NOTE = "note://same/for/all"
ACCESS = {name: {"hash": hashed(f"key-of-{name}")} for name in ("ann", "bob")}
EVERYTHING = {"prompts_list_changed": True, "resources_list_changed": True, "tools_list_changed": True}

pytestmark = [
    pytest.mark.requirement("023.users"),
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]


@dataclass
class User:
    """A client with the token of one user, and what it has heard. ``session`` is what the server calls the user's
    connection."""

    name: str
    client: Client = field(init=False)
    session: str = ""
    roots: list[str] = field(default_factory=list)
    news: list[Any] = field(default_factory=list)
    progress: list[str | None] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def at(self, url: str, mode: str) -> AsyncIterator[User]:
        headers = {"authorization": f"Bearer key-of-{self.name}"}
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=60, headers=headers) as http,
            Client(
                streamable_http_client(url, http_client=http),
                mode=mode,
                cache=None,
                log_level="debug" if self.name == "bob" else "error",
                list_roots_callback=self._said_roots,
                logging_callback=self._logged,
                message_handler=self._heard,
            ) as self.client,
        ):
            while not self.session:  # the first listing waits for the user's server only so long
                names = [each.name for each in (await self.client.list_tools()).tools]
                self.session = next((name.partition("_of_")[2] for name in names if "_of_" in name), "")
            yield self

    async def call(self, name: str, **arguments: Any) -> str:
        result = await self.client.call_tool(name, arguments, progress_callback=self._progressed)
        assert not result.is_error, result
        return str(result.content[0].text)  # type: ignore[union-attr]

    async def seen(self) -> dict[str, Any]:
        """What the server has seen of this user."""
        return dict(json.loads(await self.call("seen")))

    async def until_seen(self, condition: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until what the server has seen of this user is as wanted."""
        async with asyncio.timeout(60):
            while not condition(await self.seen()):  # noqa: ASYNC110 - another process changes it
                await asyncio.sleep(0.01)

    async def until_heard(self, kind: type[Any]) -> None:
        await until(lambda: self.has_heard(kind))

    def has_heard(self, kind: type[Any]) -> bool:
        return any(isinstance(each, kind) for each in self.news)

    async def _said_roots(self, _ctx: Any) -> types.ListRootsResult:
        roots: Any = [types.Root(uri=uri) for uri in (f"file:///{self.name}", *self.roots)]  # type: ignore[arg-type]
        return types.ListRootsResult(roots=roots)

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(str(params.data))

    async def _heard(self, message: Any) -> None:
        self.news.append(message)

    async def _progressed(self, _progress: float, _total: float | None, message: str | None) -> None:
        self.progress.append(message)


@dataclass
class Both:
    ann: User
    bob: User
    host: Host
    era: str


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with listening(SERVER) as url:
        yield url


Opened = Callable[[], AbstractAsyncContextManager[Both]]


@pytest.fixture
def opened(open_door: OpenDoor, server: str, era: str) -> Opened:
    @asynccontextmanager
    async def both() -> AsyncIterator[Both]:
        spec = ServerSpec(name="by-session", url=f"{server}/mcp", per_user=True)
        async with (
            open_door(spec, access=ACCESS, exposure="eager", pins="warn") as (url, host),
            User("ann").at(url, era) as ann,
            User("bob").at(url, era) as bob,
        ):
            assert ann.session != bob.session
            yield Both(ann, bob, host, era)

    return both


def everything(of: Any) -> str:
    return json.dumps(of.model_dump(mode="json"))


async def test_lists_and_answers_at_once_are_each_users_own(opened: Opened) -> None:
    async with opened() as both:

        async def asked(user: User) -> None:
            for _ in range(5):
                found = await asyncio.gather(
                    user.client.list_tools(),
                    user.client.list_resources(),
                    user.client.list_prompts(),
                    user.client.read_resource(NOTE),
                    user.client.call_tool("touch", {}),
                )
                for each in map(everything, found):
                    assert set(re.findall(r"session_\d+", each)) == {user.session}

        await asyncio.gather(asked(both.ann), asked(both.bob))


async def test_progress_and_logs_of_calls_at_once_reach_who_called_at_their_own_level(opened: Opened) -> None:
    """Both have asked for another level: bob for all, ann for errors alone."""
    async with opened() as both:
        if both.era == "legacy":
            await both.bob.client.set_logging_level("debug")
            await both.ann.client.set_logging_level("error")
        assert await asyncio.gather(both.ann.call("talk"), both.bob.call("talk")) == [
            both.ann.session,
            both.bob.session,
        ]
        for user, levels in ((both.ann, ["error"]), (both.bob, ["debug", "error"])):
            await until(lambda user=user, levels=levels: len(user.logs) >= len(levels))  # type: ignore[misc]
            assert user.logs == [f"{level} of {user.session}" for level in levels]
            assert user.progress == [f"{step} of {user.session}" for step in (1, 2, 3)]
        if both.era == "legacy":  # later revisions have a level for each request
            assert (await both.bob.seen())["levels"] == ["debug"]
            assert (await both.ann.seen())["levels"][-1] == "error"
            assert "debug" not in (await both.ann.seen())["levels"]


async def test_who_gives_up_a_call_gives_up_no_call_of_another(opened: Opened) -> None:
    async with opened() as both:
        anns, bobs = [asyncio.create_task(user.call("hold", tag=user.name)) for user in (both.ann, both.bob)]
        for user in (both.ann, both.bob):
            await user.until_seen(lambda seen: bool(seen["held"]))
        anns.cancel()
        await both.ann.until_seen(lambda seen: seen["cancelled"] == ["ann"])
        assert (await both.bob.seen())["cancelled"] == []
        assert not bobs.done()
        await both.ann.call("release")
        assert (await both.bob.seen())["held"] == ["bob"]
        assert not bobs.done()
        await both.bob.call("release")
        assert await bobs == both.bob.session


async def test_a_question_in_the_course_of_a_call_is_for_who_called(opened: Opened) -> None:
    async with opened() as both:
        users = (both.ann, both.bob)
        for _ in range(3):
            found = await asyncio.gather(*(user.call("roots") for user in users))
            assert found == ["file:///ann", "file:///bob"]


@pytest.mark.parametrize("era", ["legacy"])  # later revisions have no notification of roots, and no questions outside
async def test_changed_roots_are_told_to_the_users_own_connection_which_asks_that_user(opened: Opened) -> None:
    async with opened() as both:
        for user in (both.ann, both.bob):
            user.roots.append(f"file:///more/{user.name}")
        before = (await both.bob.seen())["roots"]
        await both.ann.client.send_roots_list_changed()
        await both.ann.until_seen(lambda seen: ["file:///ann", "file:///more/ann"] in seen["roots"])
        assert (await both.bob.seen())["roots"] == before
        assert "bob" not in json.dumps((await both.ann.seen())["roots"])


async def test_what_changes_for_one_user_is_told_to_that_user_alone(opened: Opened) -> None:
    """Both watch the same address and all lists."""
    async with opened() as both:
        users = (both.ann, both.bob)
        async with AsyncExitStack() as stack:
            for user in users:
                if both.era == "legacy":
                    await user.client.subscribe_resource(NOTE)
                else:
                    await stack.enter_async_context(user.client.listen(resource_subscriptions=[NOTE], **EVERYTHING))
            for teller, other in (users, users[::-1]):
                for user in users:
                    user.news.clear()
                await teller.call("touch")
                await teller.call("grow")
                for kind in (
                    types.ResourceUpdatedNotification,
                    types.PromptListChangedNotification,
                    types.ResourceListChangedNotification,
                    types.ToolListChangedNotification,
                ):
                    await teller.until_heard(kind)
                assert other.news == []
                names = [each.name for each in (await other.client.list_tools()).tools]
                assert f"own_1_of_{teller.session}" not in names
            for user in users:
                assert (await user.seen())["watched"] == [NOTE]
                assert f"own_1_of_{user.session}" in [each.name for each in (await user.client.list_tools()).tools]


async def test_who_leaves_takes_nothing_of_another_along(opened: Opened) -> None:
    """A user who leaves memory ends their own sessions and calls."""
    async with opened() as both:
        holds = asyncio.create_task(both.bob.call("hold", tag="bob"))
        await both.bob.until_seen(lambda seen: bool(seen["held"]))
        both.host.users._end(of_token("ann"))
        assert not holds.done()
        await both.bob.call("release")
        assert await holds == both.bob.session
