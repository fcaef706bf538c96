"""Chromium, headless, in which somebody presses the button that agrees. Arguments: Chromium's path, and the address.

Prints the text of the last page. It is driven over its debugging protocol, as a person's hand would.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"),
)
SECONDS = 90.0
PRESS = "document.getElementById('allow') && (document.getElementById('allow').click(), true)"
TEXT = "document.readyState == 'complete' ? document.body.innerText : ''"


async def main(program: str, url: str) -> None:
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            *(program, *FLAGS, f"--user-data-dir={folder}", url),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(SECONDS):
                sys.stdout.write(await consented(Path(folder) / "DevToolsActivePort"))
        finally:
            process.kill()
            await process.wait()


async def consented(place: Path) -> str:
    """Press the button when it is there, and return what the page says after it."""
    while not place.is_file() or len(place.read_text().split()) < 2:  # noqa: ASYNC110  # another process writes it
        await asyncio.sleep(0.1)
    port, numbers, pressed = place.read_text().split()[0], count(1), False
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as listed:
                pages = [each for each in await listed.json() if each["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"]) as page:
                if not pressed:
                    pressed = bool(await _evaluated(page, next(numbers), PRESS))
                elif "signed in" in (text := str(await _evaluated(page, next(numbers), TEXT))):
                    return text
            await asyncio.sleep(0.2)


async def _evaluated(page: aiohttp.ClientWebSocketResponse, number: int, code: str) -> Any:
    asked = {"id": number, "method": "Runtime.evaluate", "params": {"expression": code, "returnByValue": True}}
    await page.send_str(json.dumps(asked))
    while True:
        said = json.loads((await page.receive()).data)
        if said.get("id") == number:
            return said.get("result", {}).get("result", {}).get("value")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
