"""What is on the board is indexed and announced, whoever sees it first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from pegboard import Catalog
from pegboard.board import Board
from pegboard.gateways.mcp.in_process import OneServer
from pegboard.gateways.mcp.view import View
from pegboard.model import Server, ServerName
from pegboard.settings import Settings, SummariesSettings
from pegboard.summaries import Summary, as_lines
from pegboard.testing import FakeClock, FakeEncoder, fake_tool
from processes import until

EMPTY = Catalog.build([])
FULL = Catalog.build([(Server(name=ServerName("fake")), [fake_tool("dig", "Dig a hole")])])


async def test_a_change_that_a_request_takes_in_first_is_announced_and_indexed_all_the_same(
    board_of: Callable[..., Board], clock: FakeClock, encoder: FakeEncoder
) -> None:
    told = asyncio.Event()

    async def changed() -> None:
        told.set()

    view = View(Settings(), board_of(EMPTY), OneServer(FULL), clock=clock, changed=changed)
    view.renew()
    view.refresh()

    async with asyncio.timeout(5):
        await told.wait()
    await until(lambda: any("dig" in each for each in encoder.encoded))
    view.close()


async def test_tools_of_live_servers_have_the_summaries_of_the_configured_file(
    board_of: Callable[..., Board], clock: FakeClock, tmp_path: Path
) -> None:
    path = tmp_path / "summaries.jsonl"
    path.write_text(as_lines([Summary.of(FULL.tools[0], "dig: Make a pit", "rule")]))

    async def changed() -> None:
        return

    settings = Settings(summaries=SummariesSettings(file=path))
    view = View(settings, board_of(EMPTY), OneServer(FULL), clock=clock, changed=changed)
    view.renew()
    view.refresh()
    view.close()

    assert [tool.summary for tool in view.catalog.tools] == ["dig: Make a pit"]
    assert FULL.tools[0].summary == "dig: Dig a hole"
