"""Reads the servers of a registry from its URL, page by page (``GET /v0/servers``), within limits.

Source: modelcontextprotocol/registry, docs/reference/api/generic-registry-api.md and official-registry-api.md.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2

from pegboard.errors import CatalogError, ConfigError
from pegboard.registry.registry_files import servers_of
from pegboard.retries import asked_for, may_pass

PATH = "/v0/servers"
PAGE = 100
"""Servers a page; the official registry gives no more."""
MOST_PAGES = 5_000
MOST_PAGE_BYTES = 16 * 1024 * 1024
MOST_BYTES = 512 * 1024 * 1024
"""Over all pages."""
SECONDS = 30.0
TRIES = 4
LONGEST_WAIT = 30.0
"""Seconds between two tries, whatever the registry asks for."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def registry_url(source: str) -> str:
    """The URL of the list. Raises ConfigError for one that is not https, unless it is of this machine.

    >>> registry_url("https://registry.modelcontextprotocol.io")
    'https://registry.modelcontextprotocol.io/v0/servers'
    """
    try:
        parts = urlsplit(source)
    except ValueError:  # it may have a password in it, so it is not shown
        raise ConfigError(
            "The source is no https URL.", remedy="Give the https URL of a registry, a file or a folder."
        ) from None
    shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
    if parts.username or parts.password:
        raise ConfigError(f"The URL {shown!r} has a password in it.", remedy="A registry is read without signing in.")
    if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)):
        raise ConfigError(f"{shown!r} is no https URL.", remedy="Give the https URL of a registry, a file or a folder.")
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path if path.endswith("/servers") else path + PATH, query="", fragment=""))


async def registry_pages(
    url: str,
    client: httpx2.AsyncClient,
    *,
    most_pages: int = MOST_PAGES,
    most_bytes: int = MOST_BYTES,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[list[Any]]:
    """The servers of each page as JSON values, unchecked.

    Redirects are not followed, so that a registry cannot make this machine ask others. Raises CatalogError for an
    answer that is no page, a cursor that comes back, and more than a limit.
    """
    cursor, seen, size = "", set[str](), 0
    for _ in range(most_pages):
        body = await _body(
            client, url, {"limit": str(PAGE), "version": "latest"} | ({"cursor": cursor} if cursor else {}), wait
        )
        size += len(body)
        if size > most_bytes:
            raise _too_much(url, f"more than {most_bytes:,} bytes")
        page = _parsed(body, url)
        yield servers_of(page, url)
        metadata = page.get("metadata") or {}
        following = (
            metadata.get("nextCursor") or metadata.get("next_cursor") or "" if isinstance(metadata, dict) else ""
        )
        if not following:
            return
        if not isinstance(following, str) or following in seen:
            raise CatalogError(
                f"The registry at {url!r} names the same next page again.", remedy="Report it to its operator."
            )
        seen.add(following)
        cursor = following
    raise _too_much(url, f"more than {most_pages:,} pages")


async def _body(
    client: httpx2.AsyncClient, url: str, query: dict[str, str], wait: Callable[[float], Awaitable[None]]
) -> bytes:
    for attempt in range(1, TRIES + 1):
        try:
            async with client.stream("GET", url, params=query, headers={"Accept": "application/json"}) as answer:
                if answer.is_success:
                    return await _bounded(answer, url)
                status, headers = answer.status_code, answer.headers
        except httpx2.HTTPError as error:
            if attempt == TRIES:
                raise CatalogError(
                    f"The registry at {url!r} cannot be reached: {str(error) or type(error).__name__}.",
                    remedy="Check the URL and the network; the snapshot is unchanged.",
                ) from None
            await wait(2.0 ** (attempt - 1))
            continue
        if attempt == TRIES or not may_pass(status):
            raise _refused(url, status, headers.get("location", ""))
        await wait(min(asked_for(headers, 2.0 ** (attempt - 1)), LONGEST_WAIT))
    raise AssertionError("every last try returns or raises")


async def _bounded(answer: httpx2.Response, url: str) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_bytes():
        body += chunk
        if len(body) > MOST_PAGE_BYTES:
            raise _too_much(url, f"a page of more than {MOST_PAGE_BYTES:,} bytes")
    return bytes(body)


def _parsed(body: bytes, url: str) -> dict[str, Any]:
    try:
        page = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"The registry at {url!r} answered no JSON: {error}.", remedy="Check the URL.") from None
    if not isinstance(page, dict):
        raise CatalogError(f"The registry at {url!r} answered no page of servers.", remedy="Check the URL.")
    return page


def _refused(url: str, status: int, location: str) -> CatalogError:
    if location:
        return CatalogError(
            f"The registry at {url!r} redirects to {location[:200]!r}.", remedy="Give that URL, if you trust it."
        )
    return CatalogError(
        f"The registry at {url!r} answered with status {status}.", remedy="Check the URL; the snapshot is unchanged."
    )


def _too_much(url: str, what: str) -> CatalogError:
    return CatalogError(f"The registry at {url!r} has {what}.", remedy="Read it from a file, or raise the limit.")
