"""The names under which sessions and callers are looked for."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard import Settings
from pegboard.apps.cli import state_actions
from pegboard.call_charges import budget_account
from pegboard.caller_limits import LimitedCaller
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.llm.proxy.model_budgets import account_of
from pegboard.gateways.mcp.transport.auth import Access, Holder
from pegboard.gateways.mcp.transport.client_connection import named_session
from pegboard.gateways.stored_names import api_conversation, budget_keys, session_ids
from pegboard.results.result_shaper import owner_mark
from pegboard.settings.limit_settings import BudgetSettings, ModelBudgetSettings

ACCESS = {"ann": {"hash": hashed("anns")}, "bob": {"env": "BOBS_TOKEN"}}


def test_a_session_is_looked_for_under_the_names_that_each_token_and_subject_would_give_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BOBS_TOKEN", "bobs")
    settings = Settings(access=ACCESS)
    subject = Holder(name="eve", secret="rights", user="her id")

    ids = session_ids("work", settings, ["eve"])

    assert {"work", "named:work", "named:token:3:ann:work", "named:token:3:bob:work"} <= ids
    assert named_session("work", subject) in ids
    holders = [Access(settings).holder_of(token) for token in ("anns", "bobs")]
    assert {api_conversation(holder, "work") for holder in (None, *holders)} <= ids
    assert ids.isdisjoint(session_ids("works", settings, ["eve"]))


def test_a_token_whose_variable_is_not_set_keeps_no_session_from_being_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BOBS_TOKEN", raising=False)

    assert "named:token:3:bob:work" in session_ids("work", Settings(access=ACCESS), [])


def test_a_conversation_from_before_the_rotation_of_a_token_is_found() -> None:
    before = api_conversation(Access(Settings(access={"ann": {"hash": hashed("old")}})).holder_of("old"), "work")
    rotated = {"hash": hashed("new"), "previous": hashed("old"), "previous_expires": "2100-01-01T00:00:00Z"}

    assert before in session_ids("work", Settings(access={"ann": rotated}), [])


def test_budgets_of_a_caller_alone_are_found_wherever_they_are_configured() -> None:
    own, of_claims, of_all = BudgetSettings(day=1), BudgetSettings(total=2), BudgetSettings(by="all", day=3)
    of_models, of_tenant = ModelBudgetSettings(day=4), ModelBudgetSettings(by="tenant", day=5)
    issuer: dict[str, Any] = {"url": "https://a.example", "resource": "https://b.example/mcp"}
    settings = Settings(
        spend={"budgets": [own, of_all]},
        issuer=issuer | {"policies": [{"budgets": [of_claims]}]},
        llm={"budgets": [of_models, of_tenant]},
    )
    ann = LimitedCaller(name="ann", tenant="acme")

    assert budget_keys("ann", settings) == {
        budget_account(own, ann).key,
        budget_account(of_claims, ann).key,
        account_of(of_models, ann).key,
    }


def test_results_are_those_of_the_session_under_each_of_its_names() -> None:
    assert owner_mark("session", "named:work") in state_actions._owners("session", "work", {"work", "named:work"})
    assert owner_mark("session", "conversation work") in state_actions._owners("session", "work", {"work"})
