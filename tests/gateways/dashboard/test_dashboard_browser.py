"""A real browser before every page: nothing overflows, nothing is refused by the policy, and it is live."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from chromium import chromium, needs_chromium
from pegboard.activity_entries import ActivityEntry
from pegboard.gateways.dashboard.dashboard_app import NAVIGATION
from pegboard.stores import MemoryActivity
from served import OpenGateway
from upstream_specs import scripted

pytestmark = [needs_chromium, pytest.mark.timeout(600)]

LONG = "a_name_without_any_space_in_it_" * 6
UNNAMED = """[...document.querySelectorAll('a, button, input:not([type=hidden]), select, textarea')].filter((each) =>
  !each.hidden && !(each.innerText || '').trim() && !each.labels?.length && !each.getAttribute('aria-label')).length"""
"""How many controls have no name for a screen reader."""
LANDMARKS = "document.querySelectorAll('main, h1').length == 2 && document.documentElement.lang == 'en'"


@pytest.mark.parametrize(("width", "dark"), [(390, False), (1280, False), (1920, True)])
async def test_every_page_fits_and_is_complete(
    gateway_of: OpenGateway, week: MemoryActivity, width: int, dark: bool
) -> None:
    long = ActivityEntry(
        id="long",
        at=time.time(),
        door="mcp",
        kind="search",
        key=LONG,
        model=LONG,
        called=(LONG,),
        text=LONG,
        error=LONG,
    )
    await week.put([long])
    pictures = os.environ.get("TEST_PICTURES")
    async with (
        gateway_of(parts={"activity": week}, servers={"scripted": scripted()}) as gateway,
        chromium() as page,
    ):
        base = str(gateway.http.base_url).rstrip("/")
        for path in [*(name for name, _ in NAVIGATION), "activity/long"]:
            await page.open(f"{base}/ui{'/' if path else ''}{path}", width=width, dark=dark)
            across = await page.evaluated("[document.documentElement.scrollWidth, innerWidth]")
            assert across[0] <= across[1] == width, (path, across)
            assert await page.evaluated(UNNAMED) == 0, path
            assert await page.evaluated(LANDMARKS), path
            if pictures:
                await page.picture(Path(pictures) / f"{path.replace('/', '-') or 'overview'}-{width}.png")
        assert page.errors == []


async def test_decisions_appear_while_one_looks(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway, chromium() as page:
        base = str(gateway.http.base_url).rstrip("/")
        await page.open(f"{base}/ui/activity")
        await page.until("document.getElementById('state').textContent.startsWith('New')")
        for number in range(30):
            body = {"model": f"<img src=x onerror=alert({number})>", "messages": [{"role": "user", "content": "hi"}]}
            await gateway.http.post("/openai/v1/chat/completions", json=body)
        await page.until("document.querySelectorAll('#entries tbody tr').length == 30")

        assert await page.evaluated("document.querySelectorAll('#entries img').length") == 0
        assert page.errors == []


async def test_the_live_list_is_narrowed_to_a_model_and_a_tool(gateway_of: OpenGateway) -> None:
    odd = "<img src=x onerror=alert(1)>"
    async with gateway_of() as gateway, chromium() as page:
        base = str(gateway.http.base_url).rstrip("/")

        async def asked(model: str) -> None:
            body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
            await gateway.http.post("/openai/v1/chat/completions", json=body)

        await asked(odd)
        await page.open(f"{base}/ui/activity")
        assert await page.evaluated("[...document.querySelectorAll('#models option')].map((each) => each.value)") == [
            odd
        ]
        await page.evaluated(f"document.querySelector('input[name=model]').value = {json.dumps(odd)}")
        await page.evaluated("document.querySelector('form.filters').requestSubmit()")
        await page.until("location.search.includes('model=%3Cimg')")
        await page.until("document.getElementById('state')?.textContent.startsWith('New')")
        for model in ("another", odd, "another", odd):
            await asked(model)
        await page.until("document.querySelectorAll('#entries tbody tr').length == 3")
        shown = await page.evaluated(
            "[...document.querySelectorAll('#entries tbody td:nth-child(4)')].map((e) => e.innerText)"
        )
        assert set(shown) == {odd}
        assert await page.evaluated("document.querySelector('input[name=model]').value") == odd
        await page.open(f"{base}/ui/activity?tool=no/such&outcome=passed")
        assert await page.evaluated("document.querySelectorAll('#entries tbody tr').length") == 0
        assert await page.evaluated("document.querySelectorAll('img').length") == 0
        assert page.errors == []


async def test_the_keyboard_reaches_every_page(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway, chromium() as page:
        await page.open(f"{str(gateway.http.base_url).rstrip('/')}/ui")
        reached = []
        for _ in range(len(NAVIGATION) + 1):
            for kind in ("keyDown", "keyUp"):
                await page.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            reached.append(await page.evaluated("document.activeElement.innerText"))

    assert reached == ["Skip to content", *(title for _, title in NAVIGATION)]
