"""The state of one request, and what is recorded when its answer ends: the shadow's measurement and the record."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from pegboard.audit_entries import LONGEST_NAME, AuditEntry, AuditOutcome
from pegboard.gateways.llm.proxy.model_round import ModelRound
from pegboard.gateways.llm.proxy.target import Target
from pegboard.gateways.llm.selection.filter import RewrittenRequest
from pegboard.gateways.llm.shadow.recorder import (
    Recorder,
    RequestRecord,
    Shadow,
    fingerprint,
    measured,
    narrowing,
    reason_not_to,
    so_far,
    text_or_raw,
)
from pegboard.protocols import Clock, EventSink
from pegboard.telemetry.audit_log import AuditLog
from pegboard.token_usage import TokenUsage

NOT_READ = RewrittenRequest(outcome="passed")
"""The result for requests without tools: the body passes unread."""
OFF = RewrittenRequest(outcome="off", reason="the policy")
"""The result for requests whose tools all stay in any case: the body passes unread, too."""
SIGNED = RewrittenRequest(outcome="unchanged", reason="a signature covers the body (AWS SigV4); use an API key")
"""The result for signed requests: the provider would refuse any other body."""

NO_TENANTS: Mapping[str, str] = MappingProxyType({})
MOST_CALLED = 100
SHUTDOWN = "shutdown"
"""Why a request in the shadow is not measured whose tools were not selected before the process ends."""


@dataclass(slots=True, kw_only=True)
class RequestContext:
    """A request and what is known of it so far. ``answer`` is the id of its answer, which has ``ended`` or not yet."""

    target: Target
    method: str = "POST"
    started: float
    key: str | None = None
    owner: str = ""
    wishes: Mapping[str, str] = field(default_factory=dict)
    client: Mapping[str, str] = field(default_factory=dict)
    rewritten: RewrittenRequest = NOT_READ
    shadow: Shadow | None = None
    added_ms: float = 0.0
    first_chunk_s: float = 0.0
    """Seconds from sending a request whose answer streams until the first part of it."""
    status: int = 0
    called: tuple[str, ...] = ()
    used: TokenUsage | None = None
    said: int = 0
    """About how many tokens the answer has, if nobody counts."""
    rounds: Sequence[ModelRound] = ()
    """What a round trip sent: each is charged for itself."""
    budget: str = ""
    """`warn` if a budget is nearly used up."""
    answer: str = ""
    deletes: str = ""
    """The provider's id of the answer that the client deletes."""
    ended: bool = False
    refused: str = ""
    """The code of the gateway's own error, if that was the answer."""

    @property
    def known(self) -> RewrittenRequest:
        """What was done to the request; in the shadow, as far as it is known, what would have been done."""
        return so_far(self.rewritten, self.shadow)


class RequestAudit:
    """Reports each request at its end. Without a recorder nothing is recorded; ``log`` is the audit log."""

    def __init__(
        self,
        events: EventSink,
        clock: Clock,
        recorder: Recorder | None = None,
        log: AuditLog | None = None,
        tenants: Mapping[str, str] = NO_TENANTS,
    ) -> None:
        self._events = events
        self._clock = clock
        self._recorder = recorder
        self._log = log or AuditLog(clock=clock)
        self._tenants = tenants
        self._shadows: set[Shadow] = set()
        self._ending = False

    def shadow(self, selection: Coroutine[Any, Any, RewrittenRequest]) -> Shadow:
        """Begin the selection of a request in the shadow."""
        shadow = asyncio.create_task(selection)
        self._shadows.add(shadow)
        shadow.add_done_callback(self._shadows.discard)
        if self._ending:
            shadow.cancel()
        return shadow

    def end_shadows(self) -> None:
        """The process is about to end, and waits for no measurement."""
        self._ending = True
        for shadow in self._shadows:
            shadow.cancel()

    def check(self) -> None:
        """Raises AuditUnavailable if requests must not be forwarded, since they could not be logged."""
        self._log.check()

    def log(self, context: RequestContext) -> None:
        """The line of the audit log: the model's calls have names here, no arguments."""
        if not self._log.is_on:
            return
        known, key = context.known, context.key or ""
        filtered, request = known.filtered, known.request
        self._log.put(
            AuditEntry(
                at=self._clock.time(),
                event="request",
                door="llm",
                caller=key,
                tenant=self._tenants.get(key, ""),
                server=context.target.upstream.name,
                model=(request.model if request else "")[:LONGEST_NAME],
                outcome=_outcome(context),
                reason=context.refused or (str(context.status) if context.status >= HTTPStatus.BAD_REQUEST else ""),
                latency_ms=(self._clock.monotonic() - context.started) * 1000,
                decision=filtered.decision.turn_id if filtered and filtered.decision else "",
                called=tuple(name[:LONGEST_NAME] for name in context.called[:MOST_CALLED]),
            )
        )

    async def note(self, context: RequestContext) -> None:
        """Only the server waits for this; the client already has its answer."""
        target, key = context.target, context.key
        unmeasured = reason_not_to(target.served, context.status, ended=context.ended)
        if context.shadow is not None:
            if unmeasured:
                context.shadow.cancel()
            try:
                await asyncio.wait([context.shadow])
            finally:
                context.shadow.cancel()
        if context.rewritten.outcome == "shadow":
            dropped = self._ending and context.shadow is not None and context.shadow.cancelled()
            self._events.emit(
                measured(
                    context.known,
                    context.called,
                    at=self._clock.time(),
                    upstream=target.upstream.name,
                    key=key,
                    unmeasured=unmeasured or (SHUTDOWN if dropped else ""),
                )
            )
        if self._recorder is not None and not unmeasured:
            self._record(self._recorder, context)

    def _record(self, recorder: Recorder, context: RequestContext) -> None:
        known = context.known
        request, filtered = known.request, known.filtered
        if request is None:
            return
        places = range(len(request.tools)) if filtered is None else filtered.reached
        text, raw = text_or_raw(request.body)
        unknown = filtered is None and known.outcome == "shadow"
        recorder.put(
            RequestRecord(
                at=self._clock.time(),
                upstream=context.target.upstream.name,
                path=context.target.served,
                outcome=known.outcome,
                key=context.key or "",
                owner=recorder.alias(context.owner),
                conversation=recorder.alias(request.conversation) if request.conversation else "",
                policy=fingerprint(known.treatment.policy) if known.treatment else "",
                wishes=narrowing(context.wishes),
                client=dict(context.client),
                kept=None if unknown else [request.tools[place].name for place in places],
                tokens_before=filtered.tokens_before if filtered else 0,
                tokens_after=filtered.tokens_after if filtered else 0,
                called=list(context.called),
                answer=context.answer,
                body=text,
                raw=raw,
            )
        )


def _outcome(context: RequestContext) -> AuditOutcome:
    if context.refused:
        return "refused"
    if not context.status or not context.ended:
        return "cancelled"
    if context.status < HTTPStatus.BAD_REQUEST:
        return "ok"
    return "caller_error" if context.status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
