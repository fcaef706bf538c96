"""Charges for calls: reserved before the call, settled after it, within limits that fail closed.

Charges that the store could not take are kept until it can. Without a store, calls continue unless a limit is set.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import uuid4

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from pegboard.caller_limits import ANYONE, LimitedCaller, applying, counted
from pegboard.errors import NotCarriedOut, PegboardError, SpendLimitReached, StoreError, UpstreamError
from pegboard.model import ToolId
from pegboard.protocols import Clock, Spend
from pegboard.settings.limit_settings import BudgetSettings
from pegboard.settings.storage import SpendSettings
from pegboard.spend_limits import BUDGET, Account, Limits, NanoUsd, Reservation, dollars, nano_usd
from pegboard.store_health import StoreHealth

LOGGER = logging.getLogger(__name__)

STREAM = "stream"
"""The session of a pair of streams that has no id."""
FREE = NanoUsd(0)
NO_LIMITS = Limits()
MOST_KEPT = 10_000
"""Charges that can wait for the store at once."""
MOST_USD = 1e6
"""The maximum price that a server can state; the same as for configured prices."""
FLUSH_SECONDS = 5.0
EXPIRE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """The charge for a call. Its reservation is None if none could be made when the call began."""

    account: Account
    amount: NanoUsd
    reservation: Reservation | None = None
    limits: Limits = NO_LIMITS
    whose: str = ""
    """Whose limits these are, in words, if not everybody's."""


def budget_account(budget: BudgetSettings, caller: LimitedCaller) -> Account:
    """The account of what a budget for calls counts."""
    return Account(session="", key=BUDGET + counted(budget, caller))


class CallCharges:
    """Prices, and an account for each session; shared by all gateways of a process. ``priced`` is whether any call has
    a price."""

    def __init__(self, store: Spend, settings: SpendSettings, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._process = uuid4().hex
        self._kept: deque[Charge] = deque()
        self._lost = 0
        self._paying = asyncio.Lock()
        self._health = StoreHealth("Charges for calls cannot be stored")
        self._expired_at: float | None = None
        self.adopt(settings)

    def adopt(self, settings: SpendSettings) -> None:
        """Use these prices and limits from now on."""
        self._limits = settings.limits
        self._budgets = settings.budgets
        self._declared = settings.declared
        self.priced = bool(settings.prices) or settings.declared
        self._listed: Callable[[ToolId], NanoUsd | None] = lru_cache(maxsize=4096)(lambda tool: _listed(tool, settings))

    def price(self, tool: ToolId, stated: float | None = None) -> NanoUsd:
        """The price of the first pattern that matches, else the price in USD that the server ``stated``, if
        configured."""
        listed = self._listed(tool)
        if listed is not None:
            return listed
        return nano_usd(min(stated, MOST_USD)) if self._declared and stated is not None else FREE

    @asynccontextmanager
    async def charged(
        self, session: str | None, tool: ToolId, *, stated: float | None = None, caller: LimitedCaller = ANYONE
    ) -> AsyncIterator[None]:
        """Wraps a call. Charges its price to its session and to each budget, unless the server certainly did no work.

        Raises SpendLimitReached if the price exceeds a limit, and StoreError if the limit cannot be checked: the call
        must not be made then.
        """
        price = self.price(tool, stated)
        if not price:
            yield
            return
        held, cost = list[Charge](), FREE
        try:
            for charge in self._charges(session, tool, price, caller):
                held.append(await self.hold(repr(str(tool)), charge))
            await checkpoint_if_cancelled()
            cost = price
            yield
        except PegboardError as error:
            cost = cost_of(error, price)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                for charge in held:
                    with suppress(PegboardError):
                        await self.pay(replace(charge, amount=cost))

    def _charges(self, session: str | None, tool: ToolId, price: NanoUsd, caller: LimitedCaller) -> list[Charge]:
        """What one call is charged to: everybody's account, and an account for each budget that holds for it."""
        budgets = applying((*self._budgets, *caller.budgets), caller, tool)
        return [
            Charge(account=self._account(session), amount=price, limits=self._limits),
            *(
                Charge(
                    account=budget_account(each, caller),
                    amount=price,
                    limits=Limits(day=_nano(each.day), key=_nano(each.total)),
                    whose={"caller": caller.name, "tenant": caller.tenant, "all": ""}[each.by],
                )
                for each in budgets
            ),
        ]

    async def run(self) -> None:
        """Settle kept charges and expire abandoned reservations periodically, until cancelled."""
        while True:
            try:
                await self._expire()
                await self._pay_kept()
            except PegboardError:
                pass  # told by `_health`
            except Exception:
                LOGGER.exception("Charges for calls could not be settled, and are tried again")
            await asyncio.sleep(FLUSH_SECONDS)

    async def close(self) -> None:
        """Settle kept charges, if the store answers now."""
        with suppress(PegboardError):
            await self._pay_kept()
        self._log_lost(len(self._kept))

    async def hold(self, what: str, charge: Charge) -> Charge:
        """The charge with its reservation, which the caller settles by `pay`. Shielded from cancellation, so that every
        reservation is settled in the end.

        Raises SpendLimitReached, and StoreError if a limit cannot be checked.
        """
        try:
            with anyio.CancelScope(shield=True):
                await self._catch_up()
                held = await self._store.reserve(charge.account, charge.amount, charge.limits)
        except SpendLimitReached as error:
            raise SpendLimitReached(
                error.kind, limit=error.limit, used=error.used, amount=charge.amount, whose=charge.whose
            ) from error
        except PegboardError as error:
            self._health.began(error)
            if charge.limits == NO_LIMITS:
                return charge
            raise StoreError(
                f"{what} costs {dollars(charge.amount)} per call, and the spend limits cannot be checked: "
                "the spend store does not answer.",
                remedy="Try again later. The gateway's log has the store's error.",
            ) from error
        return replace(charge, reservation=held)

    async def pay(self, charge: Charge) -> None:
        """Settle a charge now, or keep it. Raises PegboardError if it was kept."""
        try:
            if charge.reservation is None and charge.amount:
                made = await self._store.reserve(charge.account, charge.amount, NO_LIMITS)
                charge = replace(charge, reservation=made)
            if charge.reservation is not None:
                await self._store.settle(charge.reservation, charge.amount)
        except BaseException as error:
            self._keep(charge)
            if isinstance(error, PegboardError):
                self._health.began(error)
            raise
        self._health.ended()

    async def _catch_up(self) -> None:
        """Settle kept charges before a call: all of them under a limit, else one per call, so that no call waits
        long."""
        if self._limits != NO_LIMITS or self._budgets:
            await self._pay_kept()
        elif not self._paying.locked():
            await self._pay_kept(most=1)

    async def _pay_kept(self, most: int = MOST_KEPT) -> None:
        """Raises PegboardError if one of them could not be settled."""
        if not self._kept and not self._paying.locked():
            return
        async with self._paying:
            for _ in range(min(most, len(self._kept))):
                await self.pay(self._kept.popleft())
        if not self._kept:
            self._log_lost(0)

    def _keep(self, charge: Charge) -> None:
        self._kept.append(charge)
        while len(self._kept) > MOST_KEPT:
            self._kept.popleft()
            if not self._lost:
                LOGGER.warning("More than %d charges are waiting for the store: the oldest are lost.", MOST_KEPT)
            self._lost += 1

    def _log_lost(self, more: int) -> None:
        if self._lost or more:
            LOGGER.warning("Charges for %d calls could not be stored and are lost.", self._lost + more)
        self._lost = 0

    async def _expire(self) -> None:
        now = self._clock.monotonic()
        if self.priced and (self._expired_at is None or now - self._expired_at >= EXPIRE_SECONDS):
            await self._store.expire()
            self._expired_at = now

    def _account(self, session: str | None) -> Account:
        """The account of a session: the store gets a hash, since the id itself grants access to the session.

        A pair of streams has no id in some protocol eras: its account lasts as long as this process.
        """
        if session is None:
            return Account(session="")
        own = f"{session}\0{self._process}" if session == STREAM else session
        return Account(session=hashlib.sha256(own.encode("utf-8", "surrogatepass")).hexdigest())


def cost_of(error: PegboardError, price: NanoUsd) -> NanoUsd:
    """What a call with this error costs: nothing, if it certainly was not carried out."""
    return price if isinstance(error, UpstreamError) and not isinstance(error, NotCarriedOut) else FREE


def _nano(usd: float | None) -> NanoUsd | None:
    return None if usd is None else nano_usd(usd)


def _listed(tool: ToolId, settings: SpendSettings) -> NanoUsd | None:
    return next((nano_usd(usd) for pattern, usd in settings.prices.items() if tool.fits(pattern)), None)
