"""How much a server may answer: bytes of a message, and entries and bytes of a list of tools, resources or prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from mcp.shared.message import SessionMessage

from pegboard.upstreams.lines import ENDS_BYTES, answered

RESULT_LIMIT = 32_000_000
LIST_LIMIT = 5_000
LIST_BYTES = 8_000_000
LIST_METHOD = "/list"
"""How the methods of lists end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes of one message (`result_limit`); entries (`list_limit`) and bytes (`list_bytes`) of a list, all pages."""

    result: int = RESULT_LIMIT
    entries: int = LIST_LIMIT
    list_bytes: int = LIST_BYTES

    def of(self, method: str) -> int:
        """Bytes that the answer to a request may have; escapes may double those of a list."""
        return min(self.result, 2 * self.list_bytes) if method.endswith(LIST_METHOD) else self.result


USUAL = Limits()


@dataclass(slots=True)
class ListRequests:
    """The requests for lists that are under way on one connection, whose answers have a limit of their own."""

    _asked: set[int | str] = field(default_factory=set)

    def sent(self, message: SessionMessage) -> None:
        said = message.message
        method, asked = getattr(said, "method", ""), getattr(said, "id", None)
        if asked is not None and method.endswith(LIST_METHOD):
            self._asked.add(asked)

    def answered(self, line: bytes, limits: Limits) -> int | str | None:
        """Whose answer is longer than a list may be, if this line is that; the request is no longer under way."""
        if not self._asked:
            return None
        whose = answered(line[:ENDS_BYTES], line[-ENDS_BYTES:])
        if whose not in self._asked:
            return None
        self._asked.discard(whose)
        return whose if len(line) > limits.of(LIST_METHOD) else None


@dataclass(slots=True)
class Room:
    """What is left for the entries of one list, page after page."""

    limits: Limits
    entries: int = 0
    bytes: int = 0
    full: str = ""
    """Why nothing more is taken, once that is so."""

    def taken(self, entries: Sequence[Any]) -> Sequence[Any]:
        """The first of these entries, as far as there is room."""
        for place, entry in enumerate(entries):
            self.entries += 1
            self.bytes += len(msgspec.json.encode(entry))
            if self.entries > self.limits.entries:
                self.full = f"more than {self.limits.entries:,} (list_limit)"
            elif self.bytes > self.limits.list_bytes:
                self.full = f"more than {self.limits.list_bytes:,} bytes (list_bytes)"
            if self.full:
                return entries[:place]
        return entries
