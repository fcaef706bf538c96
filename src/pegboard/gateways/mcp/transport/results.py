"""Results on the wire: dictionaries as handlers made them, shaped for the client's protocol era, and pages of lists."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pegboard.catalog import compact_json
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.model import JsonObject

LOGGER = logging.getLogger(__name__)

LIST_TTL_MS = 5000
HINTS = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
"""What revision 2026-07-28 requires of lists; a list that depends on the caller is never public (M25)."""
MODERN_KEYS = frozenset({"resultType", "ttlMs", "cacheScope"})
"""Keys that results have in revision 2026-07-28 only."""
OURS = ("progressToken",)
RESERVED_PREFIX = "io.modelcontextprotocol/"
Context = ServerRequestContext[Gateway, Any]
"""A request. Its `lifespan_context` is the gateway that it is for: one server answers for those of all users."""
HANDLER_RESULTS: ContextVar[list[dict[str, Any]] | None] = ContextVar("handler_results", default=None)
"""The list of a request in which its handler leaves the result for the middleware `verbatim`."""
PAGE_BYTES = 400_000
MARK_LENGTH = 12
MOST_DIGITS = 9
MOST_TOLD = 10_000
"""Definitions that are remembered as logged."""


def kept(ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result in the shape of the caller's era, which the middleware `verbatim` then sends."""
    found = shaped(ctx, result)
    results = HANDLER_RESULTS.get()
    if results is not None:
        results.append(found)
    return found


def shaped(ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
    """The result in the shape of the caller's era."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return {"resultType": "complete"} | dict(result)
    found = {key: value for key, value in result.items() if key not in MODERN_KEYS}
    if "structuredContent" in found and not isinstance(found["structuredContent"], dict):
        return _as_text(found)
    return found


def _as_text(result: dict[str, Any]) -> dict[str, Any]:
    """A result whose `structuredContent` is no object, which only revision 2026-07-28 allows: as a text, if it has
    none."""
    structured, content = result.pop("structuredContent"), result.get("content") or []
    if structured is None or any(block.get("type") == "text" for block in content):
        return result
    return result | {"content": [*content, {"type": "text", "text": compact_json(structured)}]}


def foreign_meta(ctx: Context) -> dict[str, Any]:
    """The caller's own `_meta` keys, without those of the protocol, which are valid for one hop."""
    sent = (ctx.params or {}).get("_meta") or {}
    return {key: value for key, value in sent.items() if key not in OURS and not key.startswith(RESERVED_PREFIX)}


def page(
    definitions: Sequence[JsonObject], cursor: str | None, *, part: str = "tools", identity: str = "name"
) -> dict[str, Any]:
    """One page of the list, under ``part``, and the cursor of the next page if there is one.

    Clients of the handshake era read no message above 1 MiB (MCP 2025-11-25, pagination). A cursor contains a hash of
    its list: raises MCPError (invalid params) if the list has changed since.
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
        raise MCPError(types.INVALID_PARAMS, "The list changed: start again without a cursor.")
    return int(place)


def _mark(definitions: Sequence[JsonObject], identity: str = "name") -> str:
    names = "\0".join(str(each[identity]) for each in definitions)
    return hashlib.sha256(_bytes(names)).hexdigest()[:MARK_LENGTH]


def _bytes(text: str) -> bytes:
    """The UTF-8 bytes; servers also send lone surrogates."""
    return text.encode("utf-8", "surrogatepass")


class PageCheck:
    """Checks the pages of one kind of list as the SDK does, which refuses a page for one bad definition in it.

    A server's list is checked when it arrives, but by the rules of that server's era.
    """

    def __init__(self, method: str, part: str, identity: str = "name") -> None:
        self._method = method
        self._part = part
        self._identity = identity
        self._told: set[str] = set()

    def passed(self, ctx: Context, result: Mapping[str, Any]) -> dict[str, Any]:
        """The page in the shape of the caller's era, without the definitions that it does not allow; each of those is
        logged once.

        Raises MCPError for a page that is wrong even without definitions: what it says is for the log alone.
        """
        answer, version = shaped(ctx, result), ctx.protocol_version
        if self._problem(version, answer) is None:
            return answer
        if problem := self._problem(version, answer | {self._part: []}):
            LOGGER.error("A page of %s breaks the protocol", self._method, exc_info=problem)
            raise MCPError(types.INTERNAL_ERROR, "Handler returned an invalid result") from None
        definitions = answer[self._part]
        return answer | {self._part: [each for one in definitions for each in self._allowed(version, answer, one)]}

    def _allowed(self, version: str, answer: JsonObject, definition: JsonObject) -> list[JsonObject]:
        """The definition; without its output schema, if only that is wrong; or none."""
        problem = self._problem(version, {**answer, self._part: [definition]})
        if problem is None:
            return [definition]
        shorter = without_output_schema(definition)
        is_allowed = self._problem(version, {**answer, self._part: [shorter]}) is None
        self._tell(version, definition, "without its output schema" if is_allowed else "not", problem)
        return [shorter] if is_allowed else []

    def _tell(self, version: str, definition: JsonObject, how: str, problem: ValidationError) -> None:
        name = str(definition.get(self._identity))
        if name in self._told or len(self._told) >= MOST_TOLD:
            return
        self._told.add(name)
        LOGGER.warning(
            "%s: %s is listed %s, as MCP %s does not allow it: %s", self._method, name, how, version, problem
        )

    def _problem(self, version: str, answer: JsonObject) -> ValidationError | None:
        try:
            methods.serialize_server_result(self._method, version, answer)
        except ValidationError as error:
            return error
        return None


def without_output_schema(definition: JsonObject) -> JsonObject:
    return {key: value for key, value in definition.items() if key != "outputSchema"}
