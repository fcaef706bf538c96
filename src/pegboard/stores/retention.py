"""How long every backend keeps records, and the job that removes those that were not used."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

from pegboard.errors import PegboardError
from pegboard.protocols import Activity, Archive, AuditLines, Clock, KeptResults
from pegboard.records import HoldRecord, Kind, Record, SessionRecord
from pegboard.settings.storage import RetentionSettings

LOGGER = logging.getLogger(__name__)

ALIVE = 10.0
"""Seconds for which a process counts as alive after a heartbeat."""
DAY = 86_400.0
HOLD = 600.0
"""Seconds after which money held for a call is released."""
LATE = DAY
"""Seconds after its release for which a call can still be settled."""
MARKED = DAY
"""Seconds before a cache row that was read is marked as used again, so that reads seldom write."""
EVERY = 3_600.0
"""Mean seconds between two rounds of one process."""
FIRST = 300.0
"""Seconds until the first round, at most."""
ForgetUnused = Callable[[float], Awaitable[int]]


class RetentionJob:
    """Applies the configured retention to a store, to the cache of definitions, to the audit logs, and to activity."""

    def __init__(
        self,
        archive: Archive,
        definitions: ForgetUnused,
        retention: RetentionSettings,
        clock: Clock,
        *,
        audit_logs: Sequence[AuditLines] = (),
        activity: Activity | None = None,
        results: KeptResults | None = None,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._archive = archive
        self._definitions = definitions
        self._retention = retention
        self._clock = clock
        self._audit_logs = audit_logs
        self._activity = activity
        self._results = results
        self._uniform = uniform
        self._failed = False

    async def once(self) -> Mapping[str, int]:
        """Remove what has expired and what was not used for the configured days; the number removed of each kind."""
        now, days = self._clock.time(), self._retention
        before: dict[Kind, float] = {"session": now, "hold": now - LATE}
        configured: dict[Kind, float] = {
            "meter": days.spend,
            "statistics": days.statistics,
            "lesson": days.lessons,
            "habit": days.habits,
            "embedding": days.embeddings,
        }
        before |= {kind: now - kept * DAY for kind, kept in configured.items() if kept}
        removed: dict[str, int] = {kind: await self._archive.remove(kind, before=past) for kind, past in before.items()}
        if days.definitions:
            removed["definition"] = await self._definitions(now - days.definitions * DAY)
        if days.activity and self._activity is not None:
            removed["activity"] = await self._activity.remove(now - days.activity * DAY)
        if self._results is not None:
            removed["result"] = await self._results.expire()
        if days.audit:  # the last: a log that was damaged keeps nothing else from being removed
            removed["audit"] = await self._remove_lines(now - days.audit * DAY)
        return removed

    async def _remove_lines(self, before: float) -> int:
        """Of every audit log, also if another one fails, whose error is raised then."""
        done = await asyncio.gather(*(log.remove(before) for log in self._audit_logs), return_exceptions=True)
        if failed := [each for each in done if isinstance(each, BaseException)]:
            raise failed[0]
        return sum(each for each in done if isinstance(each, int))

    async def run(self) -> None:
        """Run rounds until cancelled, at random intervals so that processes do not coincide. Warns of failures once."""
        await asyncio.sleep(self._uniform(0, FIRST))
        while True:
            try:
                await self.once()
                self._failed = False
            except PegboardError as error:
                if not self._failed:
                    LOGGER.warning("Unused records could not be removed: %s", error)
                self._failed = True
            except Exception:
                LOGGER.exception("Unused records could not be removed")
            await asyncio.sleep(self._uniform(0.5, 1.5) * EVERY)


def is_over(record: Record, now: float) -> bool:
    """Whether the record is an expired session, or a hold that can no longer be settled."""
    match record:
        case SessionRecord():
            return record.expires <= now
        case HoldRecord():
            return record.expires + LATE <= now
    return False


def live(records: Iterable[Record], now: float) -> Iterator[Record]:
    """The records that are not over."""
    return (record for record in records if not is_over(record, now))


def check_age(kind: Kind) -> None:
    """Raises ValueError for pins, which never expire: a tool whose pin is gone would be approved without review."""
    if kind == "pin":
        raise ValueError(f"A {kind} never expires.")
