"""axe-core in a page of Chromium: what keeps people with impairments from using it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chromium import Page

AXE = Path(__file__).parents[1] / ".demo" / "clients" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.exists(), reason="python scripts/install_clients.py")
FOUND = """axe.run(document, {resultTypes: ['violations'], ...%s}).then((results) => results.violations
  .filter((each) => ['serious', 'critical'].includes(each.impact))
  .map((each) => `${each.id}: ${each.nodes.map((node) => node.target.join(' ')).join(', ')}`))"""
ALL = "{}"
COLOURS = "{runOnly: ['color-contrast']}"
WIDTHS = (390, 1280)


async def grave_findings(page: Page) -> list[str]:
    """The rules that the open page breaks gravely (`serious` or `critical`), each with its elements.

    In light all rules are tried; in dark only the one that depends on colours.
    """
    await page.evaluated(AXE.read_text("utf-8"))
    found = []
    for width in WIDTHS:
        for dark, rules in ((False, ALL), (True, COLOURS)):
            await page.look(width=width, dark=dark)
            said = await page.evaluated(FOUND % rules)
            found += [f"{width} {'dark' if dark else 'light'} {each}" for each in said]
    return found
