"""What a gateway needs of the servers behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mcp.shared.dispatcher import ProgressFnT

from pegboard.catalog import Catalog
from pegboard.model import JsonObject, ToolId
from pegboard.upstreams import ServerStatus
from pegboard.upstreams.present import AskRoots


class Servers(Protocol):
    """A `Fleet` of servers, or the one server in this process that a gateway was hooked into."""

    def catalog(self) -> Catalog:
        """The tools as they are listed now."""
        ...

    def status(self) -> Sequence[ServerStatus]: ...

    async def settled(self, timeout: float, *, some: bool = False) -> bool:
        """Wait, at most ``timeout`` seconds, until each server's tools are known, or why they are not.

        With ``some``, until there are tools of any.
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
        """A client is connected, and says its roots when it is asked outside its requests, or has none."""
        ...

    def leave(self, client: str) -> None:
        """Its connection has ended, whether it comes back or not."""
        ...

    def roots_changed(self) -> None:
        """A client has other roots than before."""
        ...

    def forget(self, client: str) -> None:
        """A client has left: what was open for it alone ends."""
        ...
