"""Long lists in pages: clients of the handshake era read no message above 1 MiB (MCP 2025-11-25, pagination)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp import MCPError

from pegboard.catalog import compact_json
from pegboard.model import JsonObject

PAGE_BYTES = 400_000
MARK_LENGTH = 12
MOST_DIGITS = 9


def page(
    definitions: Sequence[JsonObject], cursor: str | None, *, part: str = "tools", identity: str = "name"
) -> dict[str, Any]:
    """One page of the list, under ``part``, and the cursor of the next where there is one.

    A cursor carries a mark of its list: raises MCPError (invalid params) where the list has changed since.
    """
    sizes = [len(_bytes(compact_json(each))) for each in definitions]
    if cursor is None and sum(sizes) <= PAGE_BYTES:
        return {part: list(definitions)}
    mark = _mark(definitions, identity)
    start = _start(cursor, mark)
    end, taken = start, 0
    while end < len(sizes) and (end == start or taken + sizes[end] <= PAGE_BYTES):
        taken += sizes[end]
        end += 1
    found: dict[str, Any] = {part: list(definitions[start:end])}
    return found | ({"nextCursor": f"{mark}.{end}"} if end < len(sizes) else {})


def _start(cursor: str | None, mark: str) -> int:
    if cursor is None:
        return 0
    of_list, _, place = cursor.partition(".")
    if of_list != mark or not place.isdecimal() or len(place) > MOST_DIGITS:
        raise MCPError(types.INVALID_PARAMS, "The list changed: begin again without a cursor.")
    return int(place)


def _mark(definitions: Sequence[JsonObject], identity: str = "name") -> str:
    names = "\0".join(str(each[identity]) for each in definitions)
    return hashlib.sha256(_bytes(names)).hexdigest()[:MARK_LENGTH]


def _bytes(text: str) -> bytes:
    """As on the wire; servers send halves of surrogate pairs too."""
    return text.encode("utf-8", "surrogatepass")
