"""What a gateway requires of the servers behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT

from pegboard.catalog import Catalog
from pegboard.model import JsonObject, ToolId
from pegboard.upstreams import ServerStatus
from pegboard.upstreams.server_requests import AskRoots


class Servers(Protocol):
    """A `Fleet` of servers, or the single in-process server that a gateway is embedded in."""

    def catalog(self) -> Catalog:
        """The tools as listed now."""
        ...

    def status(self) -> Sequence[ServerStatus]: ...

    async def settled(self, timeout: float, *, some: bool = False) -> bool:
        """Wait, at most ``timeout`` seconds, until the tools of each server, or the reason for their absence, are
        known.

        With ``some``, only until any server has tools.
        """
        ...

    async def call(
        self,
        tool: ToolId,
        arguments: JsonObject | None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """The tool's result, untouched. Raises MCPError as the server does."""
        ...

    def join(self, client: str, ask: AskRoots | None) -> None:
        """A client has connected. ``ask`` requests its roots outside its requests; None if it has no roots."""
        ...

    def leave(self, client: str) -> None:
        """The client's connection has ended; the client may return."""
        ...

    def roots_changed(self, client: str | None) -> None:
        """The roots of a client have changed; None for one without a session."""
        ...

    async def set_level(self, client: str, level: types.LoggingLevel) -> None:
        """The client wants the servers' logs from this level on."""
        ...

    def forget(self, client: str) -> None:
        """A client has left for good: end the connections that were open for it alone."""
        ...
