"""Limits on answers: bytes of a message, and entries and bytes of a list of tools, resources or prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

RESULT_LIMIT = 32_000_000
LIST_LIMIT = 5_000
LIST_BYTES = 8_000_000
LIST_METHOD = "/list"
"""Suffix of list methods."""
VALUE_BYTES = 16
"""Bytes of ``list_bytes`` per JSON value: a parsed value takes many times its size on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamLimits:
    """Bytes of a message (`result_limit`); entries (`list_limit`) and bytes (`list_bytes`) of a list over all pages."""

    result: int = RESULT_LIMIT
    entries: int = LIST_LIMIT
    list_bytes: int = LIST_BYTES

    def of(self, method: str) -> int:
        """Maximum bytes of an answer to this method. Escapes may double the size of a list."""
        return min(self.result, 2 * self.list_bytes) if method.endswith(LIST_METHOD) else self.result

    @property
    def values(self) -> int:
        """Maximum JSON values of a list over all pages."""
        return self.list_bytes // VALUE_BYTES


DEFAULT_LIMITS = UpstreamLimits()


@dataclass(slots=True)
class ListBudget:
    """How much of the limits one list has used, over its pages."""

    limits: UpstreamLimits
    entries: int = 0
    bytes: int = 0
    values: int = 0
    full: str = ""
    """Why no more entries are accepted; empty until then."""

    def taken(self, entries: Sequence[Any]) -> Sequence[Any]:
        """The first of these entries, as many as the limits allow."""
        for place, entry in enumerate(entries):
            encoded = msgspec.json.encode(entry)
            self.entries += 1
            self.bytes += len(encoded)
            self.values += values_in(encoded)
            if self.entries > self.limits.entries:
                self.full = f"more than {self.limits.entries:,} (list_limit)"
            elif self.bytes > self.limits.list_bytes:
                self.full = f"more than {self.limits.list_bytes:,} bytes (list_bytes)"
            elif self.values > self.limits.values:
                self.full = f"more than {self.limits.values:,} values (one for each {VALUE_BYTES} bytes of list_bytes)"
            if self.full:
                return entries[:place]
        return entries


def values_in(text: bytes) -> int:
    """Approximate number of values in a JSON text, at least the number of its arrays and objects.

    >>> values_in(b'{"a":[1,2],"b":{}}')
    5
    """
    return sum(map(text.count, (b",", b"[", b"{")))
