"""Why a request that a budget covers is not sent."""

from __future__ import annotations

from http import HTTPStatus

from pegboard.activity_entries import DAY_SECONDS
from pegboard.errors import PegboardError, SpendLimitReached
from pegboard.settings.limit_settings import ModelBudgetSettings
from pegboard.spend_limits import NanoUsd, dollars


class ModelBudgetReached(PegboardError):  # noqa: N818
    """Nothing is left of a budget in all. ``retry_after`` is set for a budget of a day: seconds until the next one."""

    code = "model_budget_reached"
    http_status = HTTPStatus.PAYMENT_REQUIRED
    retry_after: int | None = None

    def __init__(self, budget: ModelBudgetSettings, error: SpendLimitReached, amount: NanoUsd) -> None:
        per = "a day" if error.kind == "day" else "in all"
        whose = {"caller": "this key", "tenant": "its tenant", "all": "all keys together"}[budget.by]
        super().__init__(
            f"The budget of {dollars(error.limit)} {per} for {whose} leaves no room for a request of about "
            f"{dollars(amount)}: {dollars(error.used)} are spent or held by requests in progress.",
            remedy=self._advice(),
        )

    def _advice(self) -> str:
        return "The operator can raise it in [[llm.budgets]]."


class ModelDayBudgetReached(ModelBudgetReached):
    """Nothing is left of a budget of a day (UTC)."""

    code = "model_day_budget_reached"
    http_status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, budget: ModelBudgetSettings, error: SpendLimitReached, amount: NanoUsd, now: float) -> None:
        self.retry_after: int = DAY_SECONDS - int(now % DAY_SECONDS)
        super().__init__(budget, error, amount)

    def _advice(self) -> str:
        return f"The next day begins in {self.retry_after} seconds (UTC); the operator can raise it in [[llm.budgets]]."


class CostUnknown(PegboardError):  # noqa: N818
    """A budget covers the request, but what it will cost cannot be known."""

    code = "cost_unknown"
    http_status = HTTPStatus.FORBIDDEN
