"""Chromium, headless, driven over its debugging protocol: pages at a width, what they hold, and pictures of them."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PROGRAM = shutil.which("chromium") or ""
needs_chromium = pytest.mark.skipif(not PROGRAM, reason="needs chromium")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"),
)
SECONDS = 360.0


class Page:
    """One tab. ``errors`` are what its console complained of: what the content policy refused, and exceptions."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.errors: list[str] = []

    async def ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            said = json.loads((await self._socket.receive()).data)
            self._note(said)
            if said.get("id") == number:
                return said.get("result", {})

    async def open(self, url: str, *, width: int = 1280, dark: bool = False) -> None:
        """Return when the page is complete."""
        await self.ask("Log.enable")
        await self.ask("Runtime.enable")
        await self.look(width=width, dark=dark)
        await self.ask("Page.navigate", url=url)
        await self.until(f"location.href.split('#')[0] == {url!r} && document.readyState == 'complete'")

    async def look(self, *, width: int, dark: bool) -> None:
        """Show the page at another width (pixels), or in the other colours, without loading it again."""
        await self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.ask("Emulation.setEmulatedMedia", features=[scheme])

    async def evaluated(self, code: str) -> Any:
        answer = await self.ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        return answer.get("result", {}).get("value")

    async def until(self, code: str) -> None:
        while not await self.evaluated(code):  # noqa: ASYNC110  # the browser sets no event here
            await asyncio.sleep(0.05)

    async def text(self) -> str:
        return str(await self.evaluated("document.body.innerText"))

    async def picture(self, path: Path) -> None:
        size = await self.evaluated("({width: innerWidth, height: document.documentElement.scrollHeight})")
        clip = {"x": 0, "y": 0, "scale": 1, **size}
        taken = await self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _note(self, said: dict[str, Any]) -> None:
        if said.get("method") == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
            self.errors.append(said["params"]["entry"]["text"])
        if said.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(said["params"]["exceptionDetails"]))


@asynccontextmanager
async def chromium() -> AsyncIterator[Page]:
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            *(PROGRAM, *FLAGS, f"--user-data-dir={folder}", "about:blank"),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(SECONDS), aiohttp.ClientSession() as session:
                place = Path(folder) / "DevToolsActivePort"
                while not place.is_file() or len(place.read_text().split()) < 2:  # noqa: ASYNC110  # another process
                    await asyncio.sleep(0.1)
                port = place.read_text().split()[0]
                pages: list[Any] = []
                while not pages:
                    async with session.get(f"http://127.0.0.1:{port}/json/list") as listed:
                        pages = [each for each in await listed.json() if each["type"] == "page"]
                async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Page(socket)
        finally:
            process.kill()
            await process.wait()
