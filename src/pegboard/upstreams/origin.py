"""Whose request a server is working on: where what it asks and says meanwhile belongs (M21)."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import mcp_types as types


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a client sends with the next round of a request (MCP 2026-07-28): its answers, and the server's state."""

    responses: types.InputResponses | None = None
    state: str | None = None


class Origin(Protocol):
    """A client that waits for an answer, or several rounds of one."""

    inputs: Inputs

    @property
    def client(self) -> str:
        """Names the client among all of them. One that is not known has another name with each of its requests."""
        ...

    @property
    def named(self) -> bool:
        """Whether its next request will show the same name."""
        ...

    @property
    def takes_requests(self) -> bool:
        """Whether it can be asked while it waits (handshake era); else it is asked with a result."""
        ...

    @property
    def capabilities(self) -> types.ClientCapabilities:
        """What it can be asked."""
        ...

    async def ask(self, request: types.ServerRequest) -> types.InputResponse | types.ErrorData:
        """Its answer, however long that takes."""
        ...

    async def tell(self, message: types.ServerNotification) -> None:
        """Pass on what a server says of its work; what the client did not ask to hear is left out."""
        ...


ORIGIN: ContextVar[Origin | None] = ContextVar("origin", default=None)
"""Set around a request. On HTTP the SDK carries it to whatever comes back on the stream of that very request."""
