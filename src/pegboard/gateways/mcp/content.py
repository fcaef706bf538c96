"""What servers say besides the definitions of tools: prompts, resources and results, read by the scanner (M29)."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from pegboard.catalog import compact_json
from pegboard.events import ContentSuspected
from pegboard.gateways.mcp.shelves import KINDS, Kind
from pegboard.model import JsonObject, ServerName
from pegboard.seams import Clock, EventSink
from pegboard.settings.state import ScanPolicy
from pegboard.trust import Verdict, scan_content

LOGGER = logging.getLogger(__name__)

MOST_READ = 20_000
"""Characters of a result up to which it is read: a millisecond each 1,000. Longer ones would hold the answer up."""
AT_ONCE = 1_000
"""Characters that are read in the event loop; more is read on a thread."""
MOST_SAID = 10_000
"""Findings that are remembered, so that none is said twice."""


class Contents:
    """Under `quarantine` what is suspicious is left out of lists. A result is relayed as it is, whatever is in it."""

    def __init__(self, policy: ScanPolicy, *, events: EventSink, clock: Clock) -> None:
        self.policy = policy
        self._events = events
        self._clock = clock
        self._said: OrderedDict[tuple[str, str, tuple[str, ...]], None] = OrderedDict()

    async def listed(self, server: ServerName, kind: Kind, items: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Those of a server's prompts, resources or templates that are shown."""
        if self.policy == "off" or not items:
            return items
        verdicts = await asyncio.to_thread(lambda: [scan_content(each) for each in items])
        shown = []
        for item, verdict in zip(items, verdicts, strict=True):
            held_back = verdict.suspicious and self.policy == "quarantine"
            if verdict.suspicious:
                where = f"{kind}/{item.get(KINDS[kind].identity, '')}"
                self._say(server, where, "definition", verdict, held_back=held_back)
            if not held_back:
                shown.append(item)
        return shown

    async def answered(self, server: ServerName, where: str, result: JsonObject) -> None:
        """Say where a result seems poisoned."""
        if self.policy == "off":
            return
        texts = _texts(result)
        size = sum(map(len, texts))
        if 0 < size <= MOST_READ:
            said = {"content": texts}
            verdict = scan_content(said) if size <= AT_ONCE else await asyncio.to_thread(scan_content, said)
            if verdict.suspicious:
                self._say(server, where, "result", verdict, held_back=False)

    def _say(self, server: ServerName, where: str, what: str, verdict: Verdict, *, held_back: bool) -> None:
        key = (server, f"{what} {where}", verdict.rules)
        if key in self._said:
            return
        self._said[key] = None
        while len(self._said) > MOST_SAID:
            self._said.popitem(last=False)
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
            "held back" if held_back else "passed on all the same",
        )


def _texts(result: JsonObject) -> list[str]:
    """What a model reads of a result: texts, embedded ones too, and structured content where there are none."""
    parts = [*_objects(result.get("content")), *_objects(result.get("contents"))]
    parts += [part for message in _objects(result.get("messages")) for part in _objects(message.get("content"))]
    parts += [inner for part in parts for inner in _objects(part.get("resource"))]
    found = [text for part in parts if isinstance(text := part.get("text"), str)]
    structured = result.get("structuredContent")
    return found if found or not structured else [compact_json(structured)]


def _objects(value: Any) -> list[dict[str, Any]]:
    """Those in a list, or the one that there is."""
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, dict)]
