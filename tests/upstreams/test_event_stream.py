"""Servers on HTTP with SSE, the transport before streamable HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pegboard.errors import UpstreamError
from pegboard.model import ToolId
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import Fleet, UpstreamLimits
from processes import listening

MakeFleet = Callable[..., Fleet]

SERVER = str(Path(__file__).parents[1] / "servers" / "event_stream.py")

pytestmark = pytest.mark.requirement("B11")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with listening(SERVER) as url:
        yield f"{url}/sse"


@pytest.mark.parametrize("kind", ["sse", None])
async def test_a_server_is_listed_and_called_by_several_at_once(
    fleet_of: MakeFleet, address: str, kind: str | None
) -> None:
    async with fleet_of(ServerSpec(name="old", url=address, type=kind)) as fleet:
        assert await fleet.settled(60)
        assert [tool.name for tool in fleet.catalog().tools] == ["add", "long"]
        results = await asyncio.gather(*(fleet.call(ToolId("old", "add"), {"a": at, "b": 1}) for at in range(20)))
        assert [result["content"][0]["text"] for result in results] == [str(at + 1) for at in range(20)]


async def test_an_answer_beyond_the_limit_does_not_fill_the_memory_and_the_server_comes_back(
    fleet_of: MakeFleet, address: str
) -> None:
    async with fleet_of(ServerSpec(name="old", url=address), limits=UpstreamLimits(result=10_000)) as fleet:
        await fleet.settled(60)
        with pytest.raises(UpstreamError):
            await fleet.call(ToolId("old", "long"), {"characters": 100_000})
        result = await fleet.call(ToolId("old", "add"), {"a": 1, "b": 1})
    assert result["content"][0]["text"] == "2"


async def test_one_that_needs_signing_in_says_so_and_one_that_is_not_there_is_left_alone_for_a_while(
    fleet_of: MakeFleet,
) -> None:
    with listening(SERVER, "secret-word") as url:
        specs = [
            ServerSpec(name="unsigned", url=f"{url}/sse"),
            ServerSpec(name="good", url=f"{url}/sse", headers={"Authorization": "Bearer secret-word"}),
            ServerSpec(name="gone", url="http://127.0.0.1:9/sse"),
        ]
        async with fleet_of(*specs) as fleet:
            await fleet.settled(60)
            found = {status.name: status for status in fleet.status()}
    assert found["good"].state == "ready"
    assert found["unsigned"].reason == (
        "It waits for a sign-in (OAuth). Run `pegboard login unsigned`, or give its entry a token in its headers."
    )
    assert found["gone"].state == "unhealthy"
    assert found["gone"].reason
