"""What a request cost: the provider's count of its tokens, and their price."""

from __future__ import annotations

from http import HTTPStatus

from pegboard.gateways.llm.formats.registry import codec_for, counts
from pegboard.gateways.llm.proxy.request_audit import RequestContext
from pegboard.model_prices import PriceTable
from pegboard.spend_limits import NanoUsd


def is_billed(context: RequestContext) -> bool:
    """Whether an answer was generated: a request of a known format succeeded, if only in its first rounds, and was not
    only counted."""
    path, status = context.target.path, context.status
    asked = context.method == "POST" and codec_for(path) is not None and not counts(path)
    return asked and (0 < status < HTTPStatus.BAD_REQUEST or context.used is not None)


def cost_of(context: RequestContext, prices: PriceTable) -> NanoUsd | None:
    """None: the provider did not count, or no price is known."""
    request, used = context.rewritten.request, context.used
    price = prices.price_of(request.model) if request is not None else None
    return price.cost(used) if price is not None and used is not None else None
