"""The event of a request to a model, at its end."""

from __future__ import annotations

from typing import Any

from pegboard.activity_entries import conversation_mark
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.proxy.request_audit import RequestContext
from pegboard.gateways.llm.proxy.request_cost import cost_of, is_billed, prompt_cost_of
from pegboard.gateways.llm.selection.policy import Filtered
from pegboard.model_prices import PriceTable


def served(context: RequestContext, prices: PriceTable, *, at: float, took_ms: float) -> ModelRequestServed:
    rewritten = context.rewritten
    filtered, request = rewritten.filtered, rewritten.request
    offered = len(request.tools) if request else 0
    return ModelRequestServed(
        at=at,
        upstream=context.target.upstream.name,
        format=context.target.upstream.format,
        model=request.model if request else "",
        key=context.key or "",
        status=context.status,
        outcome=rewritten.outcome,
        reason=rewritten.reason,
        tools=offered,
        kept=len(filtered.kept.places) if filtered else offered,
        tokens_before=filtered.tokens_before if filtered else 0,
        tokens_after=filtered.tokens_after if filtered else 0,
        decision=filtered.decision.turn_id if filtered and filtered.decision else "",
        called=context.called,
        added_ms=context.added_ms,
        latency_ms=took_ms,
        failure=rewritten.failure,
        filter_ms=rewritten.took_ms,
        **_cache(filtered),
        searches=rewritten.round_trip.searches if rewritten.round_trip else 0,
        brought_back=tuple(rewritten.round_trip.found) if rewritten.round_trip else (),
        conversation=conversation_mark(request.conversation) if request else "",
        **_usage(context, prices),
    )


def _cache(filtered: Filtered | None) -> dict[str, Any]:
    """The prompt cache fields of the event."""
    if filtered is None:
        return {}
    instead = {"instead_of_defer": filtered.instead}
    if filtered.because:
        return {"cache": filtered.way} | instead
    if filtered.verdict is None:
        return instead
    found = filtered.verdict
    return instead | {
        "cache": found.kind,
        "cache_bill": found.bill,
        "cache_bill_whole": found.whole_bill,
        "narrowed": filtered.narrowed is not None,
    }


def _usage(context: RequestContext, prices: PriceTable) -> dict[str, Any]:
    """What the provider counted, and its price."""
    used = context.used
    if not is_billed(context):
        return {}
    if used is None:
        return {"metered": True}
    return {
        "metered": True,
        "input_tokens": used.input,
        "cached_tokens": used.cache_read,
        "written_tokens": used.cache_write,
        "output_tokens": used.output,
        "cost": cost_of(context, prices),
        "prompt_cost": prompt_cost_of(context, prices),
    }
