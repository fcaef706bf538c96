"""What is on the board is indexed and announced, whoever sees it first."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pegboard import Catalog
from pegboard.gateways.mcp.embedded.hooked_server import OneServer
from pegboard.gateways.mcp.gateway import catalog_view
from pegboard.gateways.mcp.gateway.catalog_view import CatalogView
from pegboard.model import Server, ServerName, Tool, ToolId
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings, SummariesSettings
from pegboard.summaries import Summary, as_lines
from pegboard.testing import FakeClock, FakeEncoder, fake_tool
from pegboard.upstreams import ServerStatus
from processes import until

EMPTY = Catalog.build([])
FULL = Catalog.build([(Server(name=ServerName("fake")), [fake_tool("dig", "Dig a hole")])])


async def test_a_change_that_a_request_takes_in_first_is_announced_and_indexed_all_the_same(
    board_of: Callable[..., RoutingBoard], clock: FakeClock, encoder: FakeEncoder
) -> None:
    told = asyncio.Event()

    async def changed() -> None:
        told.set()

    view = CatalogView(Settings(), board_of(EMPTY), OneServer(FULL), clock=clock, changed=changed)
    view.renew()
    view.refresh()

    async with asyncio.timeout(60):
        await told.wait()
    await until(lambda: any("dig" in each for each in encoder.encoded))
    view.close()


async def test_tools_of_live_servers_have_the_summaries_of_the_configured_file(
    board_of: Callable[..., RoutingBoard], clock: FakeClock, tmp_path: Path
) -> None:
    path = tmp_path / "summaries.jsonl"
    path.write_text(as_lines([Summary.of(FULL.tools[0], "dig: Make a pit", "rule")]))

    async def changed() -> None:
        return

    settings = Settings(summaries=SummariesSettings(file=path))
    view = CatalogView(settings, board_of(EMPTY), OneServer(FULL), clock=clock, changed=changed)
    view.renew()
    view.refresh()
    view.close()

    assert [tool.summary for tool in view.catalog.tools] == ["dig: Make a pit"]
    assert FULL.tools[0].summary == "dig: Dig a hole"


async def test_the_categories_of_many_tools_are_computed_off_the_event_loop(
    board_of: Callable[..., RoutingBoard], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def categories_of(tools: Sequence[Tool], *_: object) -> dict[ToolId, str]:
        threads.append(threading.current_thread())
        return {tool.id: tool.server for tool in tools}

    async def changed() -> None:
        return

    monkeypatch.setattr(catalog_view, "categories_of", categories_of)
    server = Server(name=ServerName("fake"))
    many = Catalog.build([(server, [fake_tool(f"dig_{number}", "Dig") for number in range(catalog_view.MANY + 1)])])
    view = CatalogView(Settings(), board_of(many), OneServer(many), clock=clock, changed=changed)
    await asyncio.gather(view.categorized(), view.categorized())

    assert len(view.categories) == len(many)
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
    view.close()


class Starting(OneServer):
    """Servers that go on starting; notes how long it is waited for them."""

    def __init__(self, catalog: Catalog, *names: str) -> None:
        super().__init__(catalog)
        self.names, self.waits = list(names), list[float]()

    def status(self) -> list[ServerStatus]:
        return [ServerStatus(name=name, state="starting") for name in self.names]

    async def settled(self, timeout: float, *, some: bool = False) -> bool:
        self.waits.append(timeout)
        return False


@pytest.mark.requirement("M15")
@pytest.mark.parametrize(
    ("terms", "seconds"),
    [({}, 15.0), ({"start_wait": 2.0}, 6.0), ({"search_wait": 40.0}, 40.0), ({"start_wait": 0}, 0)],
)
async def test_an_unsure_search_waits_in_vain_for_each_server_once(
    board_of: Callable[..., RoutingBoard], clock: FakeClock, terms: dict[str, float], seconds: float
) -> None:
    async def changed() -> None:
        return

    fleet = Starting(FULL, "slow")
    view = CatalogView(Settings(**terms), board_of(FULL), fleet, clock=clock, changed=changed)
    clock.advance(1000)
    assert not await view.more_started()
    assert not await view.more_started()
    assert fleet.waits == [seconds]

    fleet.names.append("new")
    assert not await view.more_started()
    assert fleet.waits == [seconds, seconds]
    view.close()
