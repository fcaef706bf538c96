"""A real HTTP server that forgets its sessions between two calls."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from pegboard.errors import UpstreamError
from pegboard.events import ServerChanged
from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from pegboard.upstreams import Fleet
from processes import listening, until

MakeFleet = Callable[..., Fleet]

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="the fleet's other tests are POSIX"),
    pytest.mark.requirement("M14"),
]

FORGETFUL = str(Path(__file__).parents[1] / "servers" / "forgetful.py")
HELLO = ToolId("web", "hello")


@pytest.fixture(params=["json", "text"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of a server whose 404 has a JSON-RPC error in its body, as the SDKs' servers send, or a word of text."""
    with listening(FORGETFUL, request.param) as url:
        yield url


async def forget(url: str, query: str = "") -> int:
    """The server forgets its sessions; how many it has had."""

    def post() -> int:
        with urlopen(Request(f"{url}/forget{query}", method="POST")) as response:  # noqa: S310
            return int(json.load(response))

    return await asyncio.to_thread(post)


async def test_it_is_initialized_again_once_and_called_again_unseen_and_listed_again(
    fleet_of: MakeFleet, url: str, events: MemoryEvents
) -> None:
    async with fleet_of(ServerSpec(name="web", url=f"{url}/mcp")) as fleet:
        await fleet.settled(60)
        assert await fleet.call(HELLO, {})
        assert await forget(url) == 1
        result = await fleet.call(HELLO, {})
        assert await forget(url) == 2
        assert [tool.name for tool in fleet.catalog().tools] == ["hello", "tool1"]
    assert result["content"][0]["text"] == "hello"
    assert {event.state for event in events.of(ServerChanged)} == {"ready"}, "nobody was told of it"  # type: ignore[attr-defined]


async def test_many_calls_that_find_it_forgotten_share_one_new_session(fleet_of: MakeFleet, url: str) -> None:
    async with fleet_of(ServerSpec(name="web", url=f"{url}/mcp")) as fleet:
        await fleet.settled(60)
        await forget(url)
        results = await asyncio.gather(*(fleet.call(HELLO, {}) for _ in range(10)))
        assert len(results) == 10
        assert await forget(url) == 2


async def test_a_server_that_forgets_every_session_is_an_error_and_no_loop(fleet_of: MakeFleet, url: str) -> None:
    async with fleet_of(ServerSpec(name="web", url=f"{url}/mcp")) as fleet:
        await fleet.settled(60)
        await forget(url, "?always")
        with pytest.raises(UpstreamError, match="forgets its sessions immediately"):
            await fleet.call(HELLO, {})
        await until(lambda: fleet.status()[0].state == "ready")
        assert await forget(url) == 3


async def test_what_is_not_found_in_a_session_that_lives_is_the_servers_own_answer(
    fleet_of: MakeFleet, url: str
) -> None:
    async with fleet_of(ServerSpec(name="web", url=f"{url}/mcp")) as fleet:
        await fleet.settled(60)
        assert (await fleet.call(ToolId("web", "no such tool"), {}))["content"][0]["text"] == "no such tool"
        assert await forget(url) == 1
