"""What a request cost: the provider's count of its tokens, and their price."""

from __future__ import annotations

from http import HTTPStatus

from pegboard.gateways.llm.formats.registry import codec_for, counts
from pegboard.gateways.llm.proxy.request_audit import RequestContext
from pegboard.model_prices import ModelPrice, PriceTable
from pegboard.spend_limits import NanoUsd
from pegboard.token_usage import TokenUsage


def is_billed(context: RequestContext) -> bool:
    """Whether an answer was generated: a request of a known format succeeded, if only in its first rounds, and was not
    only counted."""
    path, status = context.target.served, context.status
    asked = context.method == "POST" and codec_for(path) is not None and not counts(path)
    return asked and (0 < status < HTTPStatus.BAD_REQUEST or context.used is not None)


def cost_of(context: RequestContext, prices: PriceTable) -> NanoUsd | None:
    """None: the provider did not count, or no price is known."""
    price, counted = _price(context, prices), _counted(context)
    costs = [price.cost(each) for each in counted] if price is not None else []
    known = [cost for cost in costs if cost is not None]
    return NanoUsd(sum(known)) if counted and len(known) == len(counted) else None


def prompt_cost_of(context: RequestContext, prices: PriceTable) -> NanoUsd | None:
    """What the input tokens cost; None as for `cost_of`, but without need of a price of output."""
    price, counted = _price(context, prices), _counted(context)
    return NanoUsd(sum(map(price.prompt, counted))) if price is not None and counted else None


def _price(context: RequestContext, prices: PriceTable) -> ModelPrice | None:
    request = context.rewritten.request
    return prices.price_of(request.model) if request is not None else None


def _counted(context: RequestContext) -> list[TokenUsage]:
    """What the provider counted of each request that it was sent: a long prompt has prices of its own, two short ones
    have not."""
    return [each.used for each in context.rounds or (context,) if each.used is not None]
