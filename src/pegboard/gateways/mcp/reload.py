"""Follows the configuration's files: a change is taken up while everything runs (M27)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pegboard.errors import PegboardError
from pegboard.gateways.mcp.host import Host
from pegboard.settings import Settings, load_settings

LOGGER = logging.getLogger(__name__)

POLL_SECONDS = 0.5

Stamps = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where settings come from: these files, read by ``load``, which raises PegboardError for what it cannot read."""

    files: Sequence[Path] = ()
    load: Callable[[], Settings] = load_settings

    async def follow(self, host: Host) -> None:
        """Reconfigure the host whenever the files have changed and come to rest, until cancelled."""
        seen = latest = self._stamps()
        while self.files:
            await asyncio.sleep(POLL_SECONDS)
            before, latest = latest, self._stamps()
            if latest != seen and latest == before:
                seen = latest
                await self._take_up(host)

    async def _take_up(self, host: Host) -> None:
        try:
            changes = await host.reconfigure(self.load())
        except PegboardError as error:
            LOGGER.error("The changed configuration is not used, the one before stays: %s", error)
            return
        LOGGER.info(
            "The configuration changed. Servers added: %s; removed: %s; restarted: %s",
            *(", ".join(names) or "none" for names in (changes.added, changes.removed, changes.restarted)),
        )

    def _stamps(self) -> Stamps:
        return tuple(map(_stamp, self.files))


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size
