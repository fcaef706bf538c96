"""The client whose request a server is working on, which gets the server's questions and messages meanwhile (M21)."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

import mcp_types as types


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """A client's input to the next round of a request (MCP 2026-07-28): its answers, and the server's state."""

    responses: types.InputResponses | None = None
    state: str | None = None


class Origin(Protocol):
    """A client that waits for the answer to a request, over one or more rounds."""

    inputs: Inputs

    @property
    def task(self) -> Mapping[str, Any] | None:
        """What the client wants of the task that its call is to become (MCP 2025-11-25, tasks); None for a plain
        call."""
        ...

    @property
    def client(self) -> str:
        """The client's unique name. An unidentified client has a new name with each request."""
        ...

    @property
    def named(self) -> bool:
        """Whether its next request will have the same name."""
        ...

    @property
    def takes_requests(self) -> bool:
        """Whether it can be asked while it waits (handshake era); otherwise it is asked with a result."""
        ...

    @property
    def capabilities(self) -> types.ClientCapabilities:
        """What the client can be asked."""
        ...

    def token_of(self, user: str) -> str:
        """The issuer's token with which this user made the request; empty if there is none, or it has its answer."""
        ...

    async def ask(self, request: types.ServerRequest) -> types.InputResponse | types.ErrorData:
        """The client's answer, without a time limit."""
        ...

    async def tell(self, message: types.ServerNotification) -> None:
        """Pass on a server's notification about its work, unless the client did not subscribe to it."""
        ...


ORIGIN: ContextVar[Origin | None] = ContextVar("origin", default=None)
"""Set around a request. On HTTP the SDK propagates it to messages on the stream of that request."""
