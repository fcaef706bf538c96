"""The budgets of a configuration, with what is spent of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pegboard.call_charges import budget_account
from pegboard.caller_limits import ANYONE, LimitedCaller, applying
from pegboard.gateways.llm.proxy.model_budgets import account_of, covers
from pegboard.settings import Settings
from pegboard.settings.limit_settings import BudgetSettings, ModelBudgetSettings
from pegboard.spend_limits import Account, NanoUsd, nano_usd

MOST_LINES = 500
WARNED = 0.8
"""The share of a budget for calls from which on it is nearly used up; those for models have a share of their own."""
BudgetState = Literal["", "nearly used up", "used up"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSpending:
    """What was spent of budgets in all, and on one day (UTC), by the keys of their accounts."""

    total: dict[str, int] = field(default_factory=dict)
    today: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """A budget ``of`` some calls or models, for one caller, one tenant, or all together. Amounts are billionths of a
    dollar; ``day`` and ``total`` are its limits, None where it has none."""

    of: str
    whose: str
    day: NanoUsd | None
    spent_today: NanoUsd
    total: NanoUsd | None
    spent: NanoUsd
    warn: float

    @property
    def share(self) -> float:
        """The larger share of its limits that is spent."""
        pairs = ((self.spent_today, self.day), (self.spent, self.total))
        return max(spent / limit if limit else 1.0 for spent, limit in pairs if limit is not None)

    @property
    def state(self) -> BudgetState:
        if self.share >= 1:
            return "used up"
        return "nearly used up" if self.share >= self.warn else ""


def budget_lines(settings: Settings, spending: BudgetSpending, seen: Iterable[str]) -> list[BudgetLine]:
    """A line for each budget and each caller or tenant that it counts: the configured ones, and callers that were
    ``seen`` and are not keys for models. Those of which most is spent come first."""
    keys = {name: key.tenant for name, key in settings.llm.keys.items()}
    tokens = {name: "" for name in seen if name not in keys}
    tokens |= {name: token.tenant for name, token in settings.access.items()}
    found: dict[tuple[object, ...], BudgetLine] = {}
    for caller in _callers(keys):
        for budget in settings.llm.budgets:
            if covers(budget, caller):
                of = f"models {', '.join(budget.models)}" if budget.models != ("*",) else "all models"
                account = account_of(budget, caller)
                amounts = (budget.day, budget.total)
                found[of, account.key, amounts] = _line(of, budget, caller, account, spending, budget.warn)
    for caller in _callers(tokens):
        for calls in applying(settings.spend.budgets, caller, None):
            of = f"tools {', '.join(calls.tools)}" if calls.tools != ("*",) else "all calls"
            account = budget_account(calls, caller)
            found[of, account.key] = _line(of, calls, caller, account, spending, WARNED)
    return sorted(found.values(), key=lambda line: (-line.share, line.of, line.whose))[:MOST_LINES]


def _callers(tenants: Mapping[str, str]) -> list[LimitedCaller]:
    """Whoever has a name; anyone, if nobody has."""
    named = [LimitedCaller(name=name, tenant=tenant) for name, tenant in sorted(tenants.items()) if name]
    return named or [ANYONE]


def _line(
    of: str,
    budget: BudgetSettings | ModelBudgetSettings,
    caller: LimitedCaller,
    account: Account,
    spending: BudgetSpending,
    warn: float,
) -> BudgetLine:
    whose = {"caller": caller.name or "no key", "tenant": f"tenant {caller.tenant or '(none)'}", "all": "all together"}
    return BudgetLine(
        of=of,
        whose=whose[budget.by],
        day=None if budget.day is None else nano_usd(budget.day),
        spent_today=NanoUsd(spending.today.get(account.key, 0)),
        total=None if budget.total is None else nano_usd(budget.total),
        spent=NanoUsd(spending.total.get(account.key, 0)),
        warn=warn,
    )
