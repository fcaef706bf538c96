"""A call on its way to its server and back: checked, paid for, and observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import mcp_types as types
from mcp import MCPError

from pegboard.errors import ArgumentsInvalid, PegboardError, UpstreamError
from pegboard.events import CallFinished, CallRejected
from pegboard.gateways.mcp import sessions
from pegboard.gateways.mcp.caller import Exchange
from pegboard.gateways.mcp.content import Contents
from pegboard.gateways.mcp.ledger import Ledger
from pegboard.gateways.mcp.servers import Servers
from pegboard.gateways.mcp.sessions import SessionBook
from pegboard.gateways.mcp.verdicts import Awaiting
from pegboard.model import JsonObject, Outcome, ServerName, Tool, ToolId
from pegboard.routing import check_arguments, keeps_its_word
from pegboard.routing.economics.prices import stated_usd
from pegboard.seams import Clock, EventSink

Result = dict[str, Any]
Fault = Literal["server", "caller", "tool"]

CALLERS_FAULT = (types.INVALID_PARAMS, types.URL_ELICITATION_REQUIRED)
"""Protocol errors that say nothing against the server: wrong arguments, and rights that the user has yet to give."""


class Calls:
    """Results of servers are relayed untouched (M7)."""

    def __init__(
        self,
        fleet: Servers,
        book: SessionBook,
        ledger: Ledger,
        *,
        events: EventSink,
        clock: Clock,
        observe: Callable[[Outcome], None],
        contents: Contents,
    ) -> None:
        self._contents = contents
        self._fleet = fleet
        self._book = book
        self._ledger = ledger
        self._events = events
        self._clock = clock
        self._observe = observe
        self._awaiting = Awaiting()

    async def check(self, tool: Tool, arguments: JsonObject) -> None:
        """Raises ArgumentsInvalid, which is the caller's fault: no server sees such a call, and it is counted."""
        try:
            await check_arguments(tool, arguments)
        except ArgumentsInvalid:
            self._observe(Outcome(tool=tool.id, success=False, latency_ms=0, failure="caller"))
            raise

    async def relay(self, called: Tool, arguments: JsonObject, exchange: Exchange) -> Result:
        """What the server answers to exactly these arguments. Raises MCPError as it does, and PegboardError."""
        session, tool = exchange.caller.session, called.id
        async with self._ledger.charged(session, tool, stated=stated_usd(called, "price_usd")):
            result = await self._observed(called, arguments, exchange)
        await self._contents.answered(ServerName(tool.server), tool.name, result)
        if not result.get("isError", False) and result.get("resultType") != "input_required":
            await self._book.update(session, sessions.answered(tool.name))
        self._book.touch(session, sessions.use(tool))
        return result

    def rejected(self, name: str, error: PegboardError) -> Result:
        """What the client gets for a call that no server saw: a result with ``isError`` (M8)."""
        self._events.emit(CallRejected(at=self._clock.time(), tool=name, reason=error.code))
        return error.to_mcp()

    def judge(self, session: str | None, tool: ToolId, *, useful: bool) -> bool:
        """The agent's verdict on its last call of a tool, which succeeded; whether there was one to judge."""
        if not self._awaiting.judged(session, tool):
            return False
        if not useful:
            self._observe(Outcome(tool=tool, success=False, latency_ms=0, failure="verdict"))
        return True

    def forget(self, session: str) -> None:
        self._awaiting.forget(session)

    async def _observed(self, called: Tool, arguments: JsonObject, exchange: Exchange) -> Result:
        """A call that its client cancels shows nothing of the tool, nor does one that was held back."""
        tool, started = called.id, self._clock.monotonic()
        try:
            result = await self._fleet.call(tool, arguments, meta=exchange.meta, progress=exchange.progress)
        except Exception as error:
            if isinstance(error, UpstreamError) or not isinstance(error, PegboardError):
                self._note(exchange, tool, started, fault_of(error))
            raise
        self._note(exchange, tool, started, "tool" if await _failed(called, result) else None)
        return result

    def _note(self, exchange: Exchange, tool: ToolId, started: float, fault: Fault | None) -> None:
        latency = (self._clock.monotonic() - started) * 1000
        success = fault is None
        self._events.emit(
            CallFinished(at=self._clock.time(), tool=str(tool), server=tool.server, success=success, latency_ms=latency)
        )
        self._awaiting.called(exchange.caller.session, tool, success=success)
        self._observe(Outcome(tool=tool, success=success, latency_ms=latency, failure=fault))


async def _failed(tool: Tool, result: Result) -> bool:
    """Whether a result says so, or is not what the tool promises: the client gets it as it is in any case."""
    if result.get("isError", False):
        return True
    return result.get("resultType") != "input_required" and not await keeps_its_word(tool, result)


def fault_of(error: Exception) -> Fault:
    """Whose fault it is that a call has no result (DESIGN §2.2).

    >>> fault_of(MCPError(types.INVALID_PARAMS, "no such city"))
    'caller'
    """
    return "caller" if isinstance(error, MCPError) and error.error.code in CALLERS_FAULT else "server"
