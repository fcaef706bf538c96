"""A real browser before every page: nothing overflows, nothing is refused by the policy, and it is live."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from chromium import chromium, needs_chromium
from pegboard.activity_entries import ActivityEntry
from pegboard.gateways.dashboard import dashboard_app
from pegboard.gateways.dashboard.dashboard_app import NAVIGATION
from pegboard.stores import MemoryActivity
from served import Gateway, OpenGateway
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


IS_LIVE = "document.getElementById('state').textContent.startsWith('New')"
IDS = "[...document.querySelectorAll('#entries tbody tr')].map((each) => each.dataset.id)"


def seeds(at: float, many: int, name: str) -> list[ActivityEntry]:
    """Decisions from a moment on, in order."""
    return [ActivityEntry(id=f"{name}{n:02}", at=at + n, door="mcp", kind="list") for n in range(many)]


async def asked(gateway: Gateway, model: str = "a-model") -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
    await gateway.http.post("/openai/v1/chat/completions", json=body)


async def test_what_happened_while_the_list_was_stopped_is_there_when_it_goes_on(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway, chromium() as page:
        await page.open(f"{str(gateway.http.base_url).rstrip('/')}/ui/activity")
        await page.until(IS_LIVE)
        await page.evaluated("document.getElementById('live').click()")
        for number in range(3):
            await asked(gateway, f"model-{number}")
        while (await gateway.http.get("/ui/activity")).text.count("<tr data-id") < 3:  # noqa: ASYNC110  # stored then
            await asyncio.sleep(0.05)
        await page.evaluated("document.getElementById('live').click()")
        await page.until(f"{IDS}.length == 3")
        models = "[...document.querySelectorAll('#entries tbody td:nth-child(4)')].map((each) => each.innerText)"
        assert await page.evaluated(models) == ["model-2", "model-1", "model-0"]
        assert page.errors == []


async def test_a_stream_that_is_refused_is_tried_again(
    gateway_of: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dashboard_app, "MOST_STREAMS", 0)
    async with gateway_of() as gateway, chromium() as page:
        await page.open(f"{str(gateway.http.base_url).rstrip('/')}/ui/activity")
        await page.until("source.readyState == EventSource.CLOSED")
        await asked(gateway)
        monkeypatch.undo()
        await page.until(f"{IDS}.length == 1")


@pytest.mark.parametrize("later", [2, 60])
async def test_a_decision_stands_where_it_happened_and_nowhere_if_that_is_on_an_older_page(
    gateway_of: OpenGateway, later: int
) -> None:
    store, now = MemoryActivity(), time.time()
    await store.put([*seeds(now - 7_200, 2, "a"), *seeds(now + 7_200, later, "z")])
    async with gateway_of(parts={"activity": store}) as gateway, chromium() as page:
        await page.open(f"{str(gateway.http.base_url).rstrip('/')}/ui/activity")
        await page.until(IS_LIVE)
        await page.evaluated("seen = []; source.addEventListener('entry', (each) => seen.push(each.lastEventId))")
        before = await page.evaluated(IDS)
        await asked(gateway)
        await page.until("seen.some((each) => each.length > 3)")
        shown = await page.evaluated(IDS)

    assert [each for each in shown if len(each) == 3] == before
    assert [len(each) > 3 for each in shown] == ([False, False, True, False, False] if later == 2 else [False] * 50)


async def test_the_keyboard_reaches_every_page(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway, chromium() as page:
        await page.open(f"{str(gateway.http.base_url).rstrip('/')}/ui")
        reached = []
        for _ in range(len(NAVIGATION) + 1):
            for kind in ("keyDown", "keyUp"):
                await page.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            reached.append(await page.evaluated("document.activeElement.innerText"))

    assert reached == ["Skip to content", *(title for _, title in NAVIGATION)]
