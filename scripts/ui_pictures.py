"""Pictures of every page of the dashboard: on a phone, a desk and a wide screen, in light and dark.

    PYTHONPATH=tests python scripts/ui_pictures.py [FOLDER]        # default .demo/pictures

The gateway is a real one with a month of drawn decisions in its store, before which three clients play; a server
changes a tool that was approved, another has been switched off. Needs Chromium.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from chromium import PROGRAM, chromium
from pegboard.gateways.dashboard.forms import tool_field
from pegboard.model import ToolId
from pegboard_bench.observability.decisions import decisions
from played_day import opened_day

HISTORY, PLAYED = 3_000, 150
LOOKS = [(width, dark) for width in (390, 1280, 1920) for dark in (False, True)]
"""Width in pixels, and whether it is dark."""
WIDE = "document.documentElement.scrollWidth > innerWidth"
TRY = """(() => { document.querySelector('textarea').value = 'find a time when all of us are free';
  document.querySelector('main form').submit(); })()"""


async def take(folder: Path) -> list[str]:
    """Take the pictures; the names of those whose page is wider than the screen."""
    overflowing = []
    with tempfile.TemporaryDirectory(prefix="pegboard-") as state:
        async with opened_day(Path(state)) as day, chromium() as page:
            await day.host.parts.activity.put(list(decisions(HISTORY, time.time())))
            await day.play(PLAYED)
            await day.act("switch-off", target=tool_field(ToolId("warehouse", "")))
            paths = await day.paths() | {"sign-in": "/ui/sign-in", "tried": "/ui/try"}
            for name, path in paths.items():
                await page.open(day.url + path)
                if name == "tried":
                    await page.evaluated(TRY)
                    await page.until("document.querySelectorAll('table').length == 3")
                for width, dark in LOOKS:
                    await page.look(width=width, dark=dark)
                    picture = f"{name}-{width}-{'dark' if dark else 'light'}.png"
                    if await page.evaluated(WIDE):
                        overflowing.append(picture)
                    await page.picture(folder / picture)
    return overflowing


def main(folder: Path) -> str | None:
    if not PROGRAM:
        return "Chromium is needed (`apt-get install chromium`)."
    folder.mkdir(parents=True, exist_ok=True)
    overflowing = asyncio.run(take(folder))
    print(f"{len(list(folder.glob('*.png')))} pictures are in {folder}.")
    return f"Wider than the screen: {', '.join(overflowing)}" if overflowing else None


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo/pictures")))
