"""Reloads the configuration when its files change, without a restart (M27)."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pegboard.errors import ConfigError, PegboardError
from pegboard.events import ConfigurationRefused
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.library.item_search import Stamp, file_stamp, item_stamps
from pegboard.settings import Settings, load_settings
from pegboard.settings.reload_checks import REMEDY, weakened
from pegboard.settings.restart_options import in_force, waiting

LOGGER = logging.getLogger(__name__)

POLL_SECONDS = 0.5
ITEM_POLLS = 10
"""Of so many looks at the configuration files, one is also at the files of skills and agents, which may be many."""

Prepare = Callable[[Settings], Callable[[], Awaitable[None]]]
"""Prepares another part of the process for new settings and returns the function that applies them. Raises
PegboardError for settings that it cannot use."""

Stamps = tuple[Stamp, ...]


class Weaker(ConfigError):  # noqa: N818
    """A changed configuration that would remove protection."""

    code = "configuration_weaker"


@dataclass(slots=True, kw_only=True)
class Source:
    """The source of the settings: these files, read by ``load``, which raises PegboardError for files it cannot read.
    Files of skills and agents that the settings name are followed, too.

    Create it before they are read, so that no change is missed. ``refused`` is a public message that the current files
    are not used, or empty.
    """

    files: Sequence[Path] = ()
    load: Callable[[], Settings] = load_settings
    seen: Stamps = ()
    refused: str = ""

    @classmethod
    def of(cls, files: Sequence[Path], load: Callable[[], Settings]) -> Source:
        return cls(files=files, load=load, seen=tuple(map(file_stamp, files)))

    @asynccontextmanager
    async def followed(self, host: Host, *others: Prepare) -> AsyncIterator[Callable[[], None]]:
        """Within it, the host and ``others`` follow the files. Yields a function that makes them read the files at
        once."""
        asked = asyncio.Event()
        following = asyncio.create_task(self.follow(host, *others, asked=asked))
        following.add_done_callback(_tell_of_defect)
        try:
            yield asked.set
        finally:
            following.cancel()

    async def follow(self, host: Host, *others: Prepare, asked: asyncio.Event | None = None) -> None:
        """Reconfigure the host when the files have changed and are stable again, or when ``asked``, until cancelled."""
        first = self.seen or self._stamps()
        items = host.item_stamps
        seen = latest = (first, items)
        asked = asked or asyncio.Event()
        for look in itertools.count(1) if self.files else ():
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), POLL_SECONDS)
            if look % ITEM_POLLS == 0:
                items = await asyncio.to_thread(item_stamps, host.settings.items)
            before, latest = latest, (self._stamps(), items)
            if asked.is_set() or (latest != seen and latest == before):
                asked.clear()
                await self._apply(host, others)
                if not self.refused:
                    items = host.item_stamps
                seen = latest = (latest[0], items)

    async def _apply(self, host: Host, others: Sequence[Prepare]) -> None:
        before = host.settings
        try:
            settings = self.load()
            if lost := weakened(before, settings):
                raise Weaker(f"It would remove protection: {lost}.", remedy=REMEDY)
            used = in_force(host.started_with, settings)
            prepared = [prepare(used) for prepare in others]
            changes = await host.reconfigure(used)
            for apply in prepared:
                await apply()
        except PegboardError as error:
            LOGGER.error("The changed configuration is not used; the previous one stays in effect: %s", error)
            self._refuse(host, error.code, error.message if isinstance(error, Weaker) else "It cannot be used.")
            return
        except Exception:
            LOGGER.exception("The changed configuration could not be applied")
            self._refuse(host, "defect", "It could not be applied.")
            return
        self.refused, host.configured = "", settings
        if names := waiting(host.started_with, settings):
            LOGGER.warning("These changes take effect after a restart: %s", ", ".join(names))
        LOGGER.info(
            "The configuration changed. Servers added: %s; removed: %s; restarted: %s",
            *(", ".join(names) or "none" for names in (changes.added, changes.removed, changes.restarted)),
        )

    def _refuse(self, host: Host, code: str, why: str) -> None:
        self.refused = f"The changed configuration is not used; the previous one stays in effect. {why}"
        host.parts.events.emit(ConfigurationRefused(at=host.parts.clock.time(), code=code, reason=why))

    def _stamps(self) -> Stamps:
        return tuple(map(file_stamp, self.files))


def _tell_of_defect(following: asyncio.Task[None]) -> None:
    if not following.cancelled() and (error := following.exception()) is not None:
        LOGGER.error("The configuration is followed no more: restart to apply changes", exc_info=error)
