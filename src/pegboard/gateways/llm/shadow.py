"""What filtering would have done to requests that pass as they came, beside what the model then called."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace

from pegboard.events import ShadowMeasured
from pegboard.gateways.llm.filtering import Rewritten
from pegboard.gateways.llm.selection import Policy

Shadow = asyncio.Task[Rewritten]
"""The picking of the tools of a request, while that is on its way."""
NO_CALLS = "/count_tokens"
"""How a path ends at which no model is asked."""


def so_far(passing: Rewritten, shadow: Shadow | None) -> Rewritten:
    """What is known of the request now."""
    return shadow.result() if shadow is not None and shadow.done() and not shadow.cancelled() else passing


def measured(
    rewritten: Rewritten, calls: Sequence[str], *, at: float, upstream: str, key: str | None, unmeasured: str
) -> ShadowMeasured:
    """What a request in the shadow shows; ``unmeasured`` where it is known to show nothing."""
    request, filtered, treatment = rewritten.request, rewritten.filtered, rewritten.treatment
    event = ShadowMeasured(
        at=at,
        upstream=upstream,
        model=request.model if request else "",
        key=key or "",
        policy=fingerprint(treatment.policy) if treatment else "",
        unmeasured=unmeasured or rewritten.failure or ("" if filtered else "unknown"),
    )
    if request is None or filtered is None or event.unmeasured:
        return event
    called = tuple(name for name in calls if name in request.names)
    kept = {request.tools[place].name for place in filtered.reached}
    return replace(
        event,
        decision=filtered.decision.turn_id if filtered.decision else "",
        tools=len(request.tools),
        kept=len(filtered.kept.places),
        tokens_before=filtered.tokens_before,
        tokens_after=filtered.tokens_after,
        called=called,
        missed=tuple(name for name in called if name not in kept),
    )


def reason_not_to(path: str, status: int, *, ended: bool) -> str:
    """Why what became of a request says nothing of what a model calls; empty where it may."""
    if path.rstrip("/").endswith(NO_CALLS):
        return "no_model_asked"
    if not ended:
        return "broke_off"
    return "" if 200 <= status < 300 else f"status_{status}"


def fingerprint(policy: Policy) -> str:
    """Tells policies apart, so that what two of them would do is not added up. Eight hexadecimal digits."""
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:8]
