"""What ten thousand live sessions take, in a process of their own: `python -m pegboard_bench.state.sessions`."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from pathlib import Path

from pegboard.gateways.mcp.gateway.session_changes import SessionBook, answered, enable, introduced
from pegboard.model import Session, ToolId
from pegboard.stores.sessions import session_key

LIVE = 10_000
ENABLED = 12
"""Tools that searches have added to a session's list."""
CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
    "clientInfo": {"name": "visual-studio-code", "title": "Visual Studio Code", "version": "1.120.0"},
}
"""What a client says of itself."""


def tools(number: int) -> list[ToolId]:
    """Some of three hundred."""
    return [ToolId(f"server{(number + each) % 20}", f"tool_{(7 * number + each) % 15}") for each in range(ENABLED)]


def session(number: int) -> Session:
    """As a conversation of a few turns leaves it."""
    return Session(
        id=session_key(f"session {number}"),
        enabled=tuple(tools(number)),
        answered=frozenset(tool.name for tool in tools(number)[:3]),
        client=json.loads(json.dumps(CLIENT)),
    )


async def fill(book: SessionBook, count: int) -> None:
    """Each introduces its client, searches, and calls a tool, as the gateway lets it."""
    for number in range(count):
        name, found = f"{number:032x}", tools(number)
        await book.update(name, introduced(json.loads(json.dumps(CLIENT))))
        await book.update(name, enable(found, cap=40))
        await book.update(name, answered(found[0].name))


def rss() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def main(name: str, urls: dict[str, str], folder: Path) -> dict[str, int]:
    from pegboard_bench.state.stores import opened

    async with opened(name, urls, folder) as stores:
        book = SessionBook(stores.sessions)
        await fill(book, 50)
        gc.collect()
        before, kept = rss(), await stores.about()
        await fill(book, LIVE)
        gc.collect()
        after = await stores.about()
        grown = {"process": rss() - before}
        return grown | ({"store": after.bytes - kept.bytes} if after and kept else {})


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3])))))  # noqa: T201
