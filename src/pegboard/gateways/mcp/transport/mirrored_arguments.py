"""Which tools have arguments that are also sent as headers (MCP 2026-07-28, transports, custom headers)."""

from __future__ import annotations

from collections.abc import Callable

from mcp.shared.inbound import X_MCP_HEADER_KEY

from pegboard.model import JsonObject

MOST_KNOWN = 10_000
"""Tools that are remembered; then it starts over."""


class MirroredArguments:
    """The schemas of those tools by name, and none of the others: the SDK walks what it is given at every call.

    ``schema_of`` is the schema of any tool. Each is searched once for as long as it is the same object.
    """

    def __init__(self, schema_of: Callable[[str], JsonObject | None]) -> None:
        self._schema_of = schema_of
        self._known: dict[str, tuple[JsonObject, bool]] = {}

    def __call__(self, name: str) -> JsonObject | None:
        schema = self._schema_of(name)
        if schema is None:
            return None
        known = self._known.get(name)
        if known is None or known[0] is not schema:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[name] = (schema, X_MCP_HEADER_KEY in str(schema))
        return schema if known[1] else None
