"""Users behind MCP clients, who sign in for themselves on the page that the gateway sends them to."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


def confirmed(page: str) -> dict[str, str]:
    """The form of the gateway's page, as a person who ticks its box sends it."""
    mark = re.search(r'name=seen value="([^"]+)"', page)
    assert mark is not None, page
    return {"seen": mark.group(1), "me": "yes"}


class Browser:
    """Of the person behind a client: confirms the gateway's page, and consents as ``who``."""

    def __init__(self, who: str) -> None:
        self.who = who
        self.asked: list[str] = []
        self.pages: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, _ctx: object, params: Any) -> types.ElicitResult:
        self.asked.append(params.url)
        self._tasks.append(asyncio.create_task(self.sign_in(params.url)))
        return types.ElicitResult(action="accept")

    async def sign_in(self, url: str) -> None:
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=True, timeout=60) as browser:
            page = (await browser.get(url)).text
            self.pages.append(page)
            await self.consent(browser, await browser.post(url, data=confirmed(page)))

    async def consent(self, browser: httpx2.AsyncClient, page: httpx2.Response) -> None:
        self.pages.append(page.text)
        action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
        assert action is not None, page.text
        answer = {"answer": "allow", "who": self.who}
        self.pages.append((await browser.post(page.url.join(unescape(action.group(1))), data=answer)).text)


@asynccontextmanager
async def client_of(door: str, name: str, browser: Any, mode: str, *, token: str = "") -> AsyncIterator[Client]:
    """A client of the user ``name``, whose token is `key-of-NAME` unless it is given."""
    shown = {"authorization": f"Bearer {token or f'key-of-{name}'}"}
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=60, headers=shown) as http,
        Client(
            streamable_http_client(door, http_client=http), mode=mode, cache=None, elicitation_callback=browser
        ) as client,
    ):
        yield client
