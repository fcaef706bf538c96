from __future__ import annotations

from pegboard.call_charges import budget_account
from pegboard.caller_limits import LimitedCaller
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.dashboard.budget_lines import BudgetSpending, budget_lines
from pegboard.settings import load_settings
from pegboard.settings.limit_settings import BudgetSettings


def test_a_budget_for_calls_has_a_line_for_each_caller_that_was_seen() -> None:
    budget = BudgetSettings(day=2.0, tools=("github/*",))
    settings = load_settings(spend={"budgets": (budget.model_dump(),)})
    account = budget_account(budget, LimitedCaller(name="bob"))
    spending = BudgetSpending(total={account.key: 5_000_000_000}, today={account.key: 1_700_000_000})

    first, second = budget_lines(settings, spending, ["ann", "bob", ""])

    assert (first.whose, first.of, first.share, first.state) == ("bob", "tools github/*", 0.85, "nearly used up")
    assert (first.day, first.spent_today, first.total, first.spent) == (
        *(2_000_000_000, 1_700_000_000),
        *(None, 5_000_000_000),
    )
    assert (second.whose, second.share, second.state) == ("ann", 0.0, "")


def test_a_token_has_its_line_though_a_key_for_models_has_its_name() -> None:
    budget = BudgetSettings(total=1.0)
    keys = {name: {"hash": hashed(f"key of {name}")} for name in ("ann", "eve")}
    access = {name: {"hash": hashed(f"token of {name}")} for name in ("ann", "bob")}
    settings = load_settings(spend={"budgets": (budget.model_dump(),)}, access=access, llm={"keys": keys})
    account = budget_account(budget, LimitedCaller(name="ann"))

    lines = budget_lines(settings, BudgetSpending(total={account.key: 1_000_000_000}), ["ann", "eve"])

    assert [(line.whose, line.state) for line in lines] == [("ann", "used up"), ("bob", "")]


def test_budgets_that_differ_in_their_amounts_alone_have_a_line_each() -> None:
    settings = load_settings(llm={"budgets": ({"day": 1.0}, {"total": 5.0})})

    lines = budget_lines(settings, BudgetSpending(), [])

    assert {(line.day, line.total) for line in lines} == {(1_000_000_000, None), (None, 5_000_000_000)}


def test_a_budget_of_all_together_has_one_line_whoever_was_seen() -> None:
    settings = load_settings(spend={"budgets": ({"by": "all", "total": 1.0},)}, llm={"budgets": ({"day": 1.0},)})

    lines = budget_lines(settings, BudgetSpending(), ["ann", "bob"])

    assert [(line.of, line.whose) for line in lines] == [("all calls", "all together"), ("all models", "no key")]
