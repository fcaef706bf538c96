"""Persons who sign in, for tests: one who answers consent pages at once, as a browser would."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any

import httpx2

from pegboard.upstreams.oauth.person import Person

SERVERS = Path(__file__).parent / "servers"
SIGNED, AUTHORIZATION, RESOURCE = (
    str(SERVERS / f"{name}.py") for name in ("signed", "authorization_server", "resource")
)


@dataclass
class Signer:
    """Opens pages and answers them with ``answer``; keeps the ``pages`` that it was sent to, and the last text."""

    answer: str = "allow"
    pages: list[str] = field(default_factory=list)
    codes: list[tuple[str, str]] = field(default_factory=list)
    seen: str = ""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def person(self, seconds: float = 30.0) -> Person:
        return Person(open_url=self.open, show_code=self.show, seconds=seconds)

    async def open(self, url: str) -> None:
        """As a browser does, beside the one who sent it there."""
        self.pages.append(url)
        self._tasks.append(asyncio.create_task(self.browse(url)))

    async def show(self, url: str, code: str) -> None:
        self.codes.append((url, code))
        if self.answer != "nothing":
            self._tasks.append(asyncio.create_task(self.browse(url, user_code=code)))

    async def browse(self, url: str, **typed: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True, timeout=60) as browser:
            page = await browser.get(url)
            if "<form" in page.text:
                action = re.search(r'<form[^>]*action="([^"]+)"', page.text)
                where = page.url.join(unescape(action.group(1))) if action else page.url
                page = await browser.post(where, data={"answer": self.answer} | typed)
            self.seen = page.text


async def control(url: str, **changes: Any) -> Any:
    """Change a server of ours, and see what it was asked."""
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{url}/control", json=changes)
        return response.raise_for_status().json()
