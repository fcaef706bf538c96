"""What is on the board is indexed and announced, whoever sees it first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pegboard import Board, Catalog
from pegboard.gateways.mcp.in_process import OneServer
from pegboard.gateways.mcp.view import View
from pegboard.model import Server, ServerName
from pegboard.settings import Settings
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
