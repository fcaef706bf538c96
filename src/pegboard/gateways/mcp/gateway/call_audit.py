"""Every tool call in the audit log, after its answer: who called which tool with what, and what came of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mcp import MCPError

from pegboard.audit_entries import FREE, LONGEST_NAME, AuditEntry, AuditOutcome
from pegboard.errors import ArgumentsInvalid, PegboardError, UpstreamError
from pegboard.gateways.mcp.gateway.after_answer import AfterAnswer
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.model import JsonObject, Tool
from pegboard.spend_limits import NanoUsd
from pegboard.telemetry.audit_log import AuditLog

MOST_CONVERSATIONS = 10_000
"""Conversations whose last search is remembered: those that searched or called last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptedCall:
    """A call as its client made it: ``name`` as it was sent, ``called`` the tool of that name, if there is one."""

    name: str
    arguments: JsonObject
    context: CallContext
    called: Tool | None = None
    started: float | None = None


class CallAudit:
    """Puts one entry for each call into the log, if it ``is_on``."""

    def __init__(self, log: AuditLog, later: AfterAnswer) -> None:
        self.is_on = log.is_on
        self._log = log
        self._later = later
        self._searches: OrderedDict[str, str] = OrderedDict()

    def check(self) -> None:
        """Raises AuditUnavailable if calls must not be made, since they could not be logged."""
        self._log.check()

    def searched(self, caller: Caller, decision: str) -> None:
        """The next calls of this conversation follow this decision."""
        if not self.is_on:
            return
        self._searches[caller.conversation] = decision
        self._followed(caller)
        while len(self._searches) > MOST_CONVERSATIONS:
            self._searches.popitem(last=False)

    def answered(self, attempt: AttemptedCall, result: Mapping[str, Any], price: NanoUsd) -> None:
        self._note(attempt, "tool_error" if result.get("isError", False) else "ok", price=price)

    def failed(self, attempt: AttemptedCall, error: BaseException, price: NanoUsd, *, by_caller: bool) -> None:
        """The server answered with a protocol error, or the call was cancelled."""
        if isinstance(error, asyncio.CancelledError):
            self._note(attempt, "cancelled", price=price)
            return
        reason = str(error.error.code) if isinstance(error, MCPError) else type(error).__name__
        self._note(attempt, "caller_error" if by_caller else "server_error", reason, price)

    def refused(self, attempt: AttemptedCall, error: PegboardError, price: NanoUsd) -> None:
        """The call ended with an error of Pegboard's own: it was not sent, or its server could not be reached."""
        outcome: AuditOutcome = "refused"
        if isinstance(error, ArgumentsInvalid):
            outcome = "caller_error"
        elif isinstance(error, UpstreamError):
            outcome = "server_error"
        self._note(attempt, outcome, error.code, price)

    def _note(self, attempt: AttemptedCall, outcome: AuditOutcome, reason: str = "", price: NanoUsd = FREE) -> None:
        if not self.is_on:
            return
        caller, called = attempt.context.caller, attempt.called
        entry = AuditEntry(
            at=self._log.clock.time(),
            event="call",
            door="mcp",
            caller=caller.holder.name if caller.holder is not None else "",
            tenant=caller.holder.tenant if caller.holder is not None else "",
            session=session_hash(caller.session),
            server=called.server if called is not None else "",
            tool=called.name if called is not None else attempt.name[:LONGEST_NAME],
            outcome=outcome,
            reason=reason,
            price=price,
            latency_ms=(self._log.clock.monotonic() - attempt.started) * 1000 if attempt.started is not None else 0.0,
            decision=self._followed(caller),
        )
        self._later(partial(self._put, entry, attempt.arguments))

    def _followed(self, caller: Caller) -> str:
        """The decision of the conversation's last search, or empty."""
        decision = self._searches.get(caller.conversation, "")
        if decision:
            self._searches.move_to_end(caller.conversation)
        return decision

    def _put(self, entry: AuditEntry, arguments: JsonObject) -> None:
        digest, values = self._log.digested(arguments)
        self._log.put(replace(entry, arguments=digest, values=values))


def session_hash(session: str | None) -> str:
    """A session's mark in logs and events: its id itself would grant access to it.

    >>> session_hash("5f0c1b9e"), session_hash(None)
    ('1ddf1170bef0', '')
    """
    return "" if session is None else hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:12]
