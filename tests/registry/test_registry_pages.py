from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from pegboard.errors import CatalogError, ConfigError
from pegboard.registry import registry_pages as pages
from pegboard.registry.registry_pages import registry_url
from registry_entries import real_entries

URL = "https://registry.example/v0/servers"
Answer = Callable[[httpx2.Request], httpx2.Response]


async def read(answer: Answer, **limits: int) -> list[Any]:
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as client:
        found = [each async for page in pages.registry_pages(URL, client, wait=wait, **limits) for each in page]
    assert all(seconds <= pages.LONGEST_WAIT for seconds in waited)
    return found


def paged(request: httpx2.Request) -> httpx2.Response:
    """Thirty real entries a page; the cursor is the number of the first."""
    entries, first = real_entries(), int(request.url.params.get("cursor", "0"))
    following = {"nextCursor": str(first + 30)} if first + 30 < len(entries) else {}
    return httpx2.Response(200, json={"servers": entries[first : first + 30], "metadata": following})


async def test_all_pages_are_read_in_order() -> None:
    assert await read(paged) == real_entries()


async def test_a_cursor_that_comes_back_is_an_error() -> None:
    looped = httpx2.Response(200, json={"servers": [], "metadata": {"nextCursor": "again"}})

    with pytest.raises(CatalogError, match="the same next page again"):
        await read(lambda request: looped)


async def test_pages_without_end_and_too_many_bytes_are_errors() -> None:
    def endless(request: httpx2.Request) -> httpx2.Response:
        following = str(int(request.url.params.get("cursor", "0")) + 1)
        return httpx2.Response(200, json={"servers": [], "metadata": {"nextCursor": following}})

    with pytest.raises(CatalogError, match="more than 50 pages"):
        await read(endless, most_pages=50)
    with pytest.raises(CatalogError, match="more than 1,000 bytes"):
        await read(paged, most_bytes=1_000)


async def test_a_page_that_never_ends_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_PAGE_BYTES", 10_000)

    with pytest.raises(CatalogError, match="a page of more than 10,000 bytes"):
        await read(lambda request: httpx2.Response(200, content=b" " * 20_000))


@pytest.mark.parametrize("body", [b"<html>", b'{"servers": [{"na', b"[1]", b'{"servers": 3}', b"{}"])
async def test_an_answer_that_is_no_page_is_an_error(body: bytes) -> None:
    with pytest.raises(CatalogError, match=r"no JSON|no page of servers|no list of servers"):
        await read(lambda request: httpx2.Response(200, content=body))


async def test_a_redirect_is_not_followed() -> None:
    asked: list[str] = []

    def away(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(302, headers={"location": "http://169.254.169.254/latest"})

    with pytest.raises(CatalogError, match=r"redirects to 'http://169\.254\.169\.254/latest'"):
        await read(away)
    assert asked == ["registry.example"]


async def test_a_busy_registry_is_asked_again_and_a_refusal_is_not() -> None:
    statuses = iter([429, 503])
    found = await read(lambda request: httpx2.Response(busy) if (busy := next(statuses, 0)) else paged(request))
    asked: list[int] = []

    def refuse(request: httpx2.Request) -> httpx2.Response:
        asked.append(1)
        return httpx2.Response(403)

    assert len(found) == len(real_entries())
    with pytest.raises(CatalogError, match="status 403"):
        await read(refuse)
    assert len(asked) == 1


async def test_a_registry_that_cannot_be_reached_is_an_error() -> None:
    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no route")

    with pytest.raises(CatalogError, match="cannot be reached: no route"):
        await read(fail)


def test_the_url_of_the_list_is_completed_and_only_https_is_asked() -> None:
    assert registry_url("https://r.example/sub/") == "https://r.example/sub/v0/servers"
    assert registry_url("https://r.example/v0.1/servers?cursor=x") == "https://r.example/v0.1/servers"
    assert registry_url("http://127.0.0.1:80/") == "http://127.0.0.1:80/v0/servers"
    for refused in ("http://r.example", "ftp://r.example", "file:///etc/passwd", "https://"):
        with pytest.raises(ConfigError, match="is no https URL"):
            registry_url(refused)
    for source in ("https://me:secret@r.example", "https://me:secret@[x", "https://me:secret@\u2100x"):
        with pytest.raises(ConfigError) as error:
            registry_url(source)
        assert "secret" not in str(error.value)
