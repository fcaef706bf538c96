"""Scans what servers send besides tool definitions: prompts, resources and results (M29)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextvars import Context
from functools import partial
from typing import Any

from pegboard.catalog import compact_json
from pegboard.events import ContentSuspected
from pegboard.gateways.mcp.gateway.after_answer import AfterAnswer
from pegboard.gateways.mcp.resources.resource_listing import KINDS, Kind
from pegboard.gateways.mcp.trust.content_pins import ContentPins
from pegboard.model import JsonObject, ServerName
from pegboard.protocols import Clock, EventSink
from pegboard.settings.storage import ScanPolicy
from pegboard.trust import ScanResult, scan_content

LOGGER = logging.getLogger(__name__)

MOST_READ = 20_000
"""Characters up to which a result is scanned, on a thread after the answer; it takes some milliseconds per 1,000."""
MOST_REPORTED = 10_000
"""Findings that are remembered, so that none is reported twice."""
Answered = tuple[ServerName, str, Sequence[str]]
"""The server of a result, what it is of, and its texts."""


class Contents:
    """Reports suspicious content, and under `quarantine` leaves it out of lists. Results are always relayed
    unchanged."""

    def __init__(
        self,
        policy: ScanPolicy,
        *,
        events: EventSink,
        clock: Clock,
        later: AfterAnswer,
        pins: ContentPins | None = None,
    ) -> None:
        self.policy = policy
        self._later = later
        self._unread: list[Answered] = []
        self._reading: asyncio.Task[None] | None = None
        self._pins = pins
        self._events = events
        self._clock = clock
        self._reported: OrderedDict[tuple[str, str, tuple[str, ...]], None] = OrderedDict()

    async def listed(self, server: ServerName, kind: Kind, items: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """The prompts, resources, templates or skills of a server that may be listed."""
        items = items if self._pins is None else await self._pins.admitted(server, kind, items)
        if self.policy == "off" or not items:
            return items
        verdicts = await asyncio.to_thread(lambda: [scan_content(each) for each in items])
        shown = []
        for item, verdict in zip(items, verdicts, strict=True):
            held_back = verdict.suspicious and self.policy == "quarantine"
            if verdict.suspicious:
                where = f"{kind}/{item.get(KINDS[kind].identity, '')}"
                self._report(server, where, "definition", verdict, held_back=held_back)
            if not held_back:
                shown.append(item)
        return shown

    def answered(self, server: ServerName, where: str, result: JsonObject) -> None:
        """Report a result that seems poisoned, after the answer."""
        if self.policy != "off":
            self._later(partial(self._scan, server, where, result))

    def _scan(self, server: ServerName, where: str, result: JsonObject) -> None:
        texts = _texts(result)
        size = sum(map(len, texts))
        if 0 < size <= MOST_READ:
            self._unread.append((server, where, texts))
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read(), context=Context())  # not that of a request

    async def _read(self) -> None:
        """Scan what is unread on a thread, all at once: many small results cost more to hand over than to scan."""
        while self._unread:
            answers, self._unread = self._unread, []
            try:
                found = await asyncio.to_thread(_scanned, answers)
            except RuntimeError:  # the event loop ends, and hands no more work to threads
                break
            for server, where, verdict in found:
                if verdict.suspicious:
                    self._report(server, where, "result", verdict, held_back=False)
        self._reading = None

    def _report(self, server: ServerName, where: str, what: str, verdict: ScanResult, *, held_back: bool) -> None:
        key = (server, f"{what} {where}", verdict.rules)
        if key in self._reported:
            return
        self._reported[key] = None
        while len(self._reported) > MOST_REPORTED:
            self._reported.popitem(last=False)
        self._events.emit(
            ContentSuspected(
                at=self._clock.time(),
                server=server,
                where=where,
                what=what,
                score=verdict.score,
                rules=verdict.rules,
                held_back=held_back,
            )
        )
        LOGGER.warning(
            "The %s of %s of server %s seems poisoned (%s, score %.2f); it is %s.",
            what,
            ascii(where),
            server,
            ", ".join(verdict.rules),
            verdict.score,
            "held back" if held_back else "relayed anyway",
        )


def _scanned(answers: Sequence[Answered]) -> list[tuple[ServerName, str, ScanResult]]:
    found = []
    for server, where, texts in answers:
        try:
            found.append((server, where, scan_content({"content": texts})))
        except Exception:
            LOGGER.exception("A result of %s of server %s could not be scanned", ascii(where), server)
    return found


def _texts(result: JsonObject) -> list[str]:
    """The texts of a result that a model reads, including embedded ones, or its structured content if it has no
    text."""
    parts = [*_objects(result.get("content")), *_objects(result.get("contents"))]
    parts += [part for message in _objects(result.get("messages")) for part in _objects(message.get("content"))]
    parts += [inner for part in parts for inner in _objects(part.get("resource"))]
    found = [text for part in parts if isinstance(text := part.get("text"), str)]
    structured = result.get("structuredContent")
    return found if found or not structured else [compact_json(structured)]


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list, or the single object."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, dict)]
