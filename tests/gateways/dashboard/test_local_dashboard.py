"""`pegboard ui` as its user starts it: a program, its address, and a browser."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from chromium import chromium, needs_chromium
from pegboard.model import Fingerprint, ToolId
from pegboard.stores import SqlitePins
from pegboard.stores.sqlite.backend import STATE_FILE

pytestmark = pytest.mark.timeout(600)
PAY = ToolId("bank", "pay")
OLD, NEW = Fingerprint("a" * 64), Fingerprint("b" * 64)


@asynccontextmanager
async def shown(folder: Path) -> AsyncIterator[str]:
    """The address that the program prints, over state in which one definition has changed."""
    file = folder / "pegboard.toml"
    file.write_text('[servers.bank]\nurl = "http://127.0.0.1:9/mcp"\n')
    store = SqlitePins(folder / STATE_FILE)
    await store.put({PAY: OLD}, texts={PAY: '{"description": "Pay once"}'})
    await store.put({PAY: NEW}, texts={PAY: '{"description": "Pay <b>twice</b>"}'})
    store.close()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pegboard", "ui", "--json", "--config", str(file)),
        env=os.environ | {"PEGBOARD_STATE_DIR": str(folder), "PEGBOARD_CACHE_DIR": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        yield json.loads(await process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGINT)
        await process.wait()


async def test_the_address_opens_the_dashboard_once_and_for_one_browser(tmp_path: Path) -> None:
    async with shown(tmp_path) as url:
        page, _, ticket = url.partition("#")
        base = page.removesuffix("/ui/sign-in")
        async with httpx2.AsyncClient(trust_env=False, base_url=base, timeout=60) as browser:
            before = await browser.get("/ui/approvals")
            guessed = await browser.post("/ui/sign-in", data={"token": "guessed"})
            opened = await browser.post("/ui/sign-in", data={"token": ticket})
            after = await browser.get("/ui/approvals")
            elsewhere = await browser.get("/ui/approvals", headers={"host": "evil.example"})
        async with httpx2.AsyncClient(trust_env=False, base_url=base, timeout=60) as other:
            again = await other.post("/ui/sign-in", data={"token": ticket})
            closed = await other.get("/ui/approvals")

    assert base.startswith("http://127.0.0.1:")
    assert (before.status_code, guessed.status_code, opened.status_code, after.status_code) == (401, 401, 303, 200)
    assert (again.status_code, closed.status_code, elsewhere.status_code) == (401, 401, 421)
    assert "&lt;b&gt;twice&lt;/b&gt;" in after.text


@needs_chromium
async def test_a_browser_enters_by_the_address_and_approves_what_it_shows(tmp_path: Path) -> None:
    async with shown(tmp_path) as url, chromium() as page:
        await page.ask("Page.navigate", url=url)
        await page.until("location.pathname == '/ui' && document.readyState == 'complete'")
        await page.open(f"{url.partition('/ui')[0]}/ui/approvals")
        text = await page.text()
        await page.evaluated("document.querySelector('main form button').click()")
        await page.until("location.search == '?done=approved' && document.readyState == 'complete'")
        done = await page.text()

    store = SqlitePins(tmp_path / STATE_FILE)
    approved = (await store.get())[PAY].approved
    store.close()
    assert "<b>twice</b>" in text
    assert "every definition is the approved one" in done
    assert approved == NEW
