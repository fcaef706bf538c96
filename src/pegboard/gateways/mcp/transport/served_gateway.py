"""The gateway that a request on HTTP is for: one server of the SDK answers for the gateways of all users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.request_state import RequestStateBoundary

from pegboard.gateways.mcp.gateway.gateway import Gateway


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """``states`` seals what a client holds of its requests, for this gateway alone."""

    gateway: Gateway
    states: RequestStateBoundary

    @contextmanager
    def answering(self) -> Iterator[None]:
        """The request in progress, and the session that it may open, are this gateway's."""
        token = SERVED.set(self)
        try:
            yield
        finally:
            SERVED.reset(token)


SERVED: ContextVar[Served] = ContextVar("pegboard_served")


class _OfRequest:
    def __getattr__(self, name: str) -> Any:
        return getattr(SERVED.get().gateway, name)


OF_REQUEST = cast(Gateway, _OfRequest())
"""Stands for the gateway of the request in progress. Outside one, each use of it raises LookupError."""


async def states_of_request(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """A middleware: the boundary of the gateway of the request in progress."""
    return await SERVED.get().states(ctx, call_next)
