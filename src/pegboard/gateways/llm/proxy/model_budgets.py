"""Budgets for requests to models: held before a request is sent, settled by what the provider counted.

The store holds and counts, so that processes on one store keep a budget together, and a restart forgets nothing. A
request that a budget covers is refused if its cost cannot be known.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from http import HTTPStatus

import anyio

from pegboard.activity_entries import DAY_SECONDS
from pegboard.call_charges import FREE, CallCharges, Charge, cost_of
from pegboard.caller_limits import LimitedCaller
from pegboard.errors import PegboardError, SpendLimitReached
from pegboard.events import BudgetUsed
from pegboard.gateways.llm.formats.json_reader import value_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.registry import codec_for, counts
from pegboard.gateways.llm.proxy.budget_errors import CostUnknown, ModelBudgetReached, ModelDayBudgetReached
from pegboard.gateways.llm.proxy.model_round import ModelRound
from pegboard.gateways.llm.proxy.request_audit import RequestContext
from pegboard.model_prices import ModelPrice, PriceTable
from pegboard.protocols import Clock, EventSink
from pegboard.settings.limit_settings import ModelBudgetSettings
from pegboard.spend_limits import BUDGET, Account, Limits, NanoUsd, dollars, nano_usd
from pegboard.token_usage import TokenUsage

LOGGER = logging.getLogger(__name__)

BYTES_A_TOKEN = 4
MOST_INPUT = 200_000
"""Tokens of input that are held at most: a body may be a picture."""
TYPICAL_OUTPUT = 1_000
"""Tokens of output that are held, of which a request may ask for far more than it gets."""
MOST_WARNED = 10_000


class ModelBudgets:
    """The budgets of a configuration."""

    def __init__(
        self,
        budgets: Sequence[ModelBudgetSettings],
        charges: CallCharges | None,
        prices: PriceTable,
        events: EventSink,
        clock: Clock,
    ) -> None:
        self._budgets = budgets if charges is not None else ()
        self._charges = charges
        self._prices = prices
        self._events = events
        self._clock = clock
        self._warned = dict[str, int]()

    def cover(self, caller: LimitedCaller) -> bool:
        """Whether a budget holds for some requests of the caller: their bodies must be read then."""
        return any(covers(each, caller) for each in self._budgets)

    @asynccontextmanager
    async def charged(self, context: RequestContext, caller: LimitedCaller) -> AsyncIterator[None]:
        """Wraps the sending of a request. Raises ModelBudgetReached, CostUnknown, or StoreError if a budget cannot be
        checked: the request must not be sent then."""
        found = self._applying(context, caller)
        if not found or self._charges is None:
            yield
            return
        price, tokens = self._price(context), _input_tokens(context)
        amount = price.cost(TokenUsage(input=tokens, output=TYPICAL_OUTPUT)) or FREE
        held, cost = list[Charge](), FREE
        try:
            for each in _by_account(found, caller):
                held.append(await self._held(self._charges, each, caller, amount, context))
            cost = amount
            yield
            cost = _cost(context, price, tokens)
        except PegboardError as error:
            cost = cost_of(error, cost) if not context.status else _cost(context, price, tokens)
            raise
        except BaseException:  # the client has gone: what was sent and said until then is billed
            cost = _cost(context, price, tokens) if cost else FREE
            raise
        finally:
            with anyio.CancelScope(shield=True):
                for charge in held:
                    with suppress(PegboardError):
                        await self._charges.pay(replace(charge, amount=cost))

    def _applying(self, context: RequestContext, caller: LimitedCaller) -> list[ModelBudgetSettings]:
        """The budgets that hold for a request. Raises CostUnknown for one whose model or cost cannot be told."""
        path, request = context.target.served, context.rewritten.request
        if context.method != "POST" or codec_for(path) is None or counts(path):
            return []
        found = [each for each in dict.fromkeys(self._budgets) if covers(each, caller)]
        if found and request is None:
            raise CostUnknown(
                f"A budget holds for this key, and the request was not read: {context.rewritten.reason or 'no model'}.",
                remedy="Send a smaller request, unsigned, that names its model.",
            )
        found = [each for each in found if request and (not request.model or _names(each, request.model))]
        if found and request is not None and _in_background(request):
            raise CostUnknown(
                "A budget holds for this key, and what an answer in the background costs is never said to the gateway.",
                remedy="Leave out `background`, or set it to false.",
            )
        return found

    def _price(self, context: RequestContext) -> ModelPrice:
        model = context.rewritten.request.model if context.rewritten.request else ""
        price = self._prices.price_of(model)
        if price is None or price.output is None:
            raise CostUnknown(
                f"A budget holds for this key, and the model {model[:200]!r} has no price.",
                remedy="The operator can give it one in [activity.prices], with `input` and `output`.",
            )
        return price

    async def _held(
        self,
        charges: CallCharges,
        budgets: Sequence[ModelBudgetSettings],
        caller: LimitedCaller,
        amount: NanoUsd,
        context: RequestContext,
    ) -> Charge:
        """The charge with its reservation, for budgets of one account; a warning if that takes more than the share at
        which one is due."""
        day = _least(each.day for each in budgets)
        total = _least(each.total for each in budgets)
        budget = budgets[0].model_copy(update={"day": day, "total": total})
        whole = Limits(day=_nano(day), key=_nano(total))
        part = Limits(
            day=_nano(_least(None if each.day is None else each.day * each.warn for each in budgets)),
            key=_nano(_least(None if each.total is None else each.total * each.warn for each in budgets)),
        )
        account = account_of(budget, caller)
        what = f"A request to {context.target.upstream.name!r}"
        try:
            return await charges.hold(what, Charge(account=account, amount=amount, limits=part))
        except SpendLimitReached as error:
            self._warn(budget, caller, account, error)
            context.budget = "warn"
        try:
            return await charges.hold(what, Charge(account=account, amount=amount, limits=whole))
        except SpendLimitReached as error:
            self._events.emit(_used(budget, caller, error, at=self._clock.time(), refused=True))
            if error.kind == "day":
                raise ModelDayBudgetReached(budget, error, amount, self._clock.time()) from error
            raise ModelBudgetReached(budget, error, amount) from error

    def _warn(
        self, budget: ModelBudgetSettings, caller: LimitedCaller, account: Account, error: SpendLimitReached
    ) -> None:
        """Warn once a day for each budget and whom it counts."""
        today = int(self._clock.time() // DAY_SECONDS)
        if self._warned.get(account.key) == today:
            return
        if len(self._warned) >= MOST_WARNED:
            self._warned.clear()
        self._warned[account.key] = today
        used = _used(budget, caller, error, at=self._clock.time(), refused=False)
        LOGGER.warning(
            "%s of the budget of %s %s for %s are spent or held.",
            dollars(error.used),
            dollars(used.limit),
            used.per,
            used.whose or "all keys",
        )
        self._events.emit(used)


def covers(budget: ModelBudgetSettings, caller: LimitedCaller) -> bool:
    """Whether a budget holds for a caller's requests to some models."""
    named = ((caller.name, budget.callers), (caller.tenant, budget.tenants))
    return all(any(fnmatchcase(name, pattern) for pattern in patterns) for name, patterns in named)


def _names(budget: ModelBudgetSettings, model: str) -> bool:
    """Whether a budget holds for a model; providers differ in whether case matters."""
    return any(fnmatchcase(model.lower(), name.lower()) for name in budget.models)


def _in_background(request: LlmRequest) -> bool:
    """Whether the answer comes later (Responses): the request that brings its usage names no model."""
    return value_of(request.text, request.fields, "background") is True


def account_of(budget: ModelBudgetSettings, caller: LimitedCaller) -> Account:
    """The account of what a budget counts: raising its amounts forgets nothing that was spent."""
    whose = {"caller": caller.name, "tenant": caller.tenant, "all": ""}[budget.by]
    named = ["models", budget.by, budget.callers, budget.tenants, budget.models, whose]
    return Account(session="", key=BUDGET + hashlib.sha256(json.dumps(named).encode()).hexdigest()[:32])


def _by_account(budgets: Sequence[ModelBudgetSettings], caller: LimitedCaller) -> list[list[ModelBudgetSettings]]:
    """Budgets that differ only in their amounts count the same, on one account: it is charged once."""
    found: dict[Account, list[ModelBudgetSettings]] = {}
    for each in budgets:
        found.setdefault(account_of(each, caller), []).append(each)
    return list(found.values())


def _least(amounts: Iterable[float | None]) -> float | None:
    """The smallest of the amounts that are given."""
    return min((each for each in amounts if each is not None), default=None)


def _used(
    budget: ModelBudgetSettings, caller: LimitedCaller, error: SpendLimitReached, *, at: float, refused: bool
) -> BudgetUsed:
    limits: Mapping[str, float | None] = {"day": budget.day, "key": budget.total}
    return BudgetUsed(
        at=at,
        by=budget.by,
        whose={"caller": caller.name, "tenant": caller.tenant, "all": ""}[budget.by],
        per="a day" if error.kind == "day" else "in all",
        used=error.used,
        limit=_nano(limits[error.kind]) or FREE,
        refused=refused,
    )


def _input_tokens(context: RequestContext) -> int:
    """About how many tokens the body has."""
    request, body = context.rewritten.request, context.rewritten.body
    return _tokens(len(body if body is not None else request.body if request is not None else b""))


def _tokens(size: int) -> int:
    """About how many tokens of input so many bytes are."""
    return min(size // BYTES_A_TOKEN, MOST_INPUT)


def _cost(context: RequestContext, price: ModelPrice, tokens: int) -> NanoUsd:
    """What the provider counted; where it did not, or the client did not wait for it, what went to and fro."""
    if context.rounds:
        return NanoUsd(sum(_cost_of_round(each, price) for each in context.rounds))
    if context.status >= HTTPStatus.BAD_REQUEST:
        return FREE
    return price.cost(_spent(context, tokens)) or FREE


def _cost_of_round(sent: ModelRound, price: ModelPrice) -> NanoUsd:
    """What one request of a round trip cost; an error costs nothing, and leaves what the others cost."""
    return FREE if sent.status >= HTTPStatus.BAD_REQUEST else price.cost(_spent(sent, _tokens(sent.asked))) or FREE


def _spent(answered: RequestContext | ModelRound, tokens: int) -> TokenUsage:
    """What was counted of an answer, or came of it; ``tokens`` are those of the request."""
    used = answered.used
    if used is None:
        return TokenUsage(input=tokens, output=answered.said)
    return used if answered.ended else replace(used, output=max(used.output, answered.said))


def _nano(usd: float | None) -> NanoUsd | None:
    return None if usd is None else nano_usd(usd)
