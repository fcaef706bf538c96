"""axe-core before every page of the dashboard, on a phone and on a desk, in light and in dark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from axe import grave_findings, needs_axe
from chromium import chromium, needs_chromium
from pegboard.gateways.dashboard.forms import tool_field
from pegboard.model import ToolId
from played_day import opened_day

pytestmark = [needs_chromium, needs_axe, pytest.mark.timeout(600)]

TRY = """(() => { document.querySelector('textarea').value = 'open an issue about the build';
  document.querySelector('main form').submit(); })()"""


async def test_axe_finds_nothing_grave_on_any_page(tmp_path: Path) -> None:
    found = []
    async with opened_day(tmp_path) as day, chromium() as page:
        await day.play(12)
        await day.act("switch-off", target=tool_field(ToolId("github", "merge_pull_request")))
        paths = await day.paths() | {"switched-off": "/ui/tools?done=off", "sign-in": "/ui/sign-in"}
        for name, path in paths.items():
            await page.open(day.url + path)
            found += [(name, each) for each in await grave_findings(page)]
        await page.open(f"{day.url}/ui/try")
        await page.evaluated(TRY)
        await page.until("document.querySelectorAll('table').length == 3")
        found += [("tried", each) for each in await grave_findings(page)]

    assert not found, json.dumps(found, indent=1)
