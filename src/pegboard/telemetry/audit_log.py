"""Writes the audit log in the background: no call waits for it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any

from pegboard.audit_entries import LONGEST_VALUES, AuditEntry, digest
from pegboard.errors import PegboardError
from pegboard.protocols import AuditLines, Clock

LOGGER = logging.getLogger(__name__)

MOST_WAITING = 20_000
"""Lines that wait for a log that cannot be written; further ones are lost, and the log says how many."""
AT_ONCE = 1_000
RETRY_SECONDS = 1.0


class AuditUnavailable(PegboardError):  # noqa: N818
    """The audit log is required, and cannot be written."""

    code = "audit_unavailable"
    http_status = 503

    def __init__(self) -> None:
        super().__init__(
            "Calls are refused while the audit log cannot be written.",
            remedy="The operator finds the reason in the gateway's log.",
        )


class AuditLog:
    """Takes entries, and writes them to each of the logs in their order. Without logs it does nothing.

    Acts of operators are written before they are done: to ``acts`` if there are no logs. ``key`` makes digests of
    arguments that nobody else can guess; with ``values`` the arguments are kept too. With ``required``, `check`
    raises while a log cannot be written. Await `close` at the end.
    """

    def __init__(
        self,
        logs: Iterable[AuditLines] = (),
        *,
        clock: Clock,
        key: bytes = b"",
        values: bool = False,
        required: bool = False,
        acts: AuditLines | None = None,
    ) -> None:
        self._logs = list(logs)
        self._acts = [acts] if acts is not None and not self._logs else self._logs
        self._waiting = [_Waiting(log) for log in self._logs]
        self.clock = clock
        self._key = key
        self._values = values
        self._required = required

    @property
    def is_on(self) -> bool:
        return bool(self._waiting)

    def check(self) -> None:
        """Raises AuditUnavailable if calls must not be made now."""
        if self._required and any(each.failing for each in self._waiting):
            raise AuditUnavailable

    def put(self, entry: AuditEntry) -> None:
        for each in self._waiting:
            each.put(entry)

    async def act(self, entry: AuditEntry) -> None:
        """Write what an operator is about to do. Raises StoreError if a log does not take it: then it must not be
        done."""
        for log in self._acts:
            await log.append([entry])

    def digested(self, given: Any) -> tuple[str, str]:
        """The digest of the arguments of a call, and the arguments as text if they are kept."""
        return digest(given, self._key), _text(given) if self._values else ""

    async def close(self) -> None:
        """Return once everything is written that can be."""
        for each in self._waiting:
            await each.close()


class _Waiting:
    """What waits for one log. A log that fails is tried again until it works or the process ends."""

    def __init__(self, log: AuditLines) -> None:
        self._log = log
        self._entries: deque[AuditEntry] = deque()
        self._lost = 0
        self._writing: asyncio.Task[None] | None = None
        self._closed = asyncio.Event()
        self.failing = False

    def put(self, entry: AuditEntry) -> None:
        if len(self._entries) >= MOST_WAITING:
            if not self._lost:
                LOGGER.warning("More than %d lines wait for the audit log: further ones are lost.", MOST_WAITING)
            self._lost += 1
            return
        self._entries.append(entry)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def close(self) -> None:
        self._closed.set()
        if self._writing is not None:
            await self._writing
        if self._entries or self._lost:
            LOGGER.warning("%d lines of the audit log could not be written.", len(self._entries) + self._lost)

    async def _write(self) -> None:
        batch, lost = list[AuditEntry](), 0
        while self._entries:
            if not batch:  # one that failed comes again as it was: the log may have taken it
                batch, lost = list(islice(self._entries, AT_ONCE)), self._lost
                if lost:
                    batch.append(AuditEntry(at=batch[-1].at, event="lost", door=batch[-1].door, lost=lost))
            try:
                await self._log.append(batch)
            except PegboardError as error:
                self._failed(error)
                if self._closed.is_set():
                    return
                await self._rest()
                continue
            for _ in batch[: len(batch) - bool(lost)]:
                self._entries.popleft()
            self._lost -= lost
            batch = []
            if self.failing:
                LOGGER.warning("The audit log is written again.")
            self.failing = False

    def _failed(self, error: PegboardError) -> None:
        if not self.failing:
            LOGGER.warning("The audit log cannot be written, and is tried again: %s", error)
        self.failing = True

    async def _rest(self) -> None:
        try:
            async with asyncio.timeout(RETRY_SECONDS):
                await self._closed.wait()
        except TimeoutError:
            return


def _text(given: Any) -> str:
    text = json.dumps(given, separators=(",", ":"), ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUES else text[:LONGEST_VALUES] + "…"
