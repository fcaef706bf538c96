"""The loopback address to which a browser returns after a person has signed in (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from pegboard.errors import PegboardError

PATH = "/callback"
HOST = "127.0.0.1"
MOST_BYTES = 16_384
READ_SECONDS = 10.0
OK = 200


class Loopback:
    """Waits at ``url`` for the one answer whose ``state`` is that of the request; others get an error and change
    nothing."""

    def __init__(self, server: str, url: str) -> None:
        self.url = url
        self._server = server
        self._state = ""
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    def expect(self, authorization_url: str) -> None:
        """Take the state from the URL to which the person is sent."""
        self._state = (parse_qs(urlsplit(authorization_url).query).get("state") or [""])[0]

    async def answer(self, seconds: float) -> AuthorizationCodeResult:
        """Raises PegboardError if the person refused, or did nothing in time."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._answer), seconds)
        except TimeoutError as error:
            raise PegboardError(
                f"Nobody has signed in to {self._server!r} within {seconds:g} s.", remedy="Run the command again."
            ) from error

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            async with asyncio.timeout(READ_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, *_ = head.split("\r\n", 1)[0].split(" ")
            writer.write(self._page(method, target))
            await writer.drain()
        writer.close()

    def _page(self, method: str, target: str) -> bytes:
        parts = urlsplit(target)
        if method != "GET" or parts.path != PATH:
            return _html(404, "There is nothing here.")
        return _html(*self.received(parts.query))

    def take(self, address: str) -> str:
        """Take an address that a browser on another machine was sent to. What is wrong with it; empty if it counts."""
        before, _, query = address.strip().partition("?")
        if before != self.url:
            return f"Paste the whole address at which the browser ended; it begins with {self.url}?"
        status, sentence = self.received(query.partition("#")[0])
        return "" if status == OK else sentence

    @property
    def state(self) -> str:
        """That of the sign-in; empty before it is known."""
        return self._state

    def received(self, query: str) -> tuple[int, str]:
        """Status and sentence of the page that answers."""
        said = {name: values[0] for name, values in parse_qs(query).items()}
        if not self._state or said.get("state") != self._state:
            return 400, "This is not the answer to a sign-in that was begun here."
        if self._answer.done():
            return 400, "This sign-in is over."
        if "code" not in said:
            reason = said.get("error_description") or said.get("error") or "no code was sent"
            self._answer.set_exception(
                PegboardError(f"Signing in to {self._server!r} was refused: {reason[:200]}.", remedy="Try again.")
            )
            return OK, f"Signing in to {self._server} was refused. You may close this page."
        self._answer.set_result(AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said.get("iss")))
        return OK, f"You are signed in to {self._server}. You may close this page."


@asynccontextmanager
async def loopback(server: str, port: int = 0) -> AsyncIterator[Loopback]:
    """Listens on this machine alone. A ``port`` that is in use is an OSError; 0 is a free one."""
    waiting: list[Loopback] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await waiting[0].serve(reader, writer)

    listening = await asyncio.start_server(serve, HOST, port, limit=MOST_BYTES)
    waiting.append(Loopback(server, f"http://{HOST}:{listening.sockets[0].getsockname()[1]}{PATH}"))
    try:
        yield waiting[0]
    finally:
        listening.close()
        with suppress(asyncio.InvalidStateError):
            waiting[0]._answer.cancel()


def _html(status: int, sentence: str) -> bytes:
    """No page refers to another one, and none can be put into a frame."""
    text = f"<!doctype html><meta charset=utf-8><title>Pegboard</title><p>{html.escape(sentence)}</p>".encode()
    reason = {200: "OK", 400: "Bad Request", 404: "Not Found"}[status]
    head = (
        f"HTTP/1.1 {status} {reason}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(text)}\r\n"
        "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nx-content-type-options: nosniff\r\n"
        "content-security-policy: default-src 'none'; frame-ancestors 'none'\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + text
