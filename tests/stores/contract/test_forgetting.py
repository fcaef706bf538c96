"""What belongs to a person, a key or a server is found in any store, and nothing else goes with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from backends import Backend
from pegboard.call_charges import budget_account
from pegboard.caller_limits import LimitedCaller
from pegboard.gateways.llm.conversation.answer_store import AnswerStore, KeptAnswer
from pegboard.gateways.llm.formats.protocol import KeptSearches
from pegboard.habits import HabitKey, habits_of
from pegboard.model import Fingerprint, Outcome, Session, ToolId
from pegboard.records import Kind, MeterRecord
from pegboard.settings.limit_settings import BudgetSettings
from pegboard.spend_limits import Account, Limits, nano_usd
from pegboard.stores.erasure import forget_caller, forget_everything, forget_session, forget_tools
from pegboard.stores.sessions import session_key
from pegboard.traffic import Seen
from records import held

ENDPOINTS = ("", "reading")
TOOLS = [ToolId("git", "log"), ToolId("git", "show"), ToolId("time", "now")]


@pytest.fixture
async def full(lasting: Backend) -> Backend:
    """Alice has two sessions, one of them with a toolset; Bob has one, and a call of his is under way."""
    accounts = [
        Account(session=session_key("first"), key="alice"),
        Account(session=session_key("second", "reading"), key="alice"),
        Account(session=session_key("third"), key="bob"),
    ]
    spend = lasting.spend()
    for account in accounts:
        await lasting.sessions().save(Session(id=account.session))
        await spend.settle(await spend.reserve(account, nano_usd(1), Limits()), nano_usd(1))
    await spend.reserve(accounts[2], nano_usd(1), Limits())
    await lasting.statistics().observe([Outcome(tool=tool, success=True, latency_ms=1) for tool in TOOLS])
    await lasting.lessons().add({"talks": Seen(requests=1.0)})
    await lasting.habits().add({HabitKey(habits_of("alice", "mcp"), *TOOLS[0]): np.ones(3, np.float32)})
    await lasting.pins().put(dict.fromkeys(TOOLS, Fingerprint("a")))
    return lasting


def some(removed: Mapping[Kind, int]) -> dict[Kind, int]:
    return {kind: count for kind, count in removed.items() if count}


@pytest.mark.requirement("design.forget")
async def test_a_session_goes_with_what_it_spent_and_the_totals_stay(full: Backend) -> None:
    assert some(await forget_session(full.archive(), "first", ENDPOINTS)) == {"session": 1, "meter": 1}

    assert await full.sessions().load(session_key("first")) is None
    assert await full.sessions().load(session_key("third")) is not None
    meters = [record async for record in full.archive().read("meter") if isinstance(record, MeterRecord)]
    assert {each.name: each.spent for each in meters if each.kind == "key"} == {
        "alice": nano_usd(2),
        "bob": nano_usd(1),
    }


async def test_the_session_of_a_toolset_is_found_by_the_id_that_its_client_has(full: Backend) -> None:
    assert some(await forget_session(full.archive(), "second", ENDPOINTS)) == {"session": 1, "meter": 1}
    assert some(await forget_session(full.archive(), "second", ENDPOINTS)) == {}


async def test_what_is_held_for_a_session_goes_too(full: Backend) -> None:
    assert some(await forget_session(full.archive(), "third", ENDPOINTS)) == {"session": 1, "meter": 1, "hold": 1}


async def test_a_session_whose_account_has_the_clients_own_id_is_found_too(lasting: Backend) -> None:
    spend = lasting.spend()
    await spend.settle(await spend.reserve(Account(session="raw", key="k"), nano_usd(1), Limits()), nano_usd(1))

    assert some(await forget_session(lasting.archive(), "raw", ENDPOINTS)) == {"meter": 1}


async def kept_answers(backend: Backend) -> AnswerStore:
    """Alice has a conversation of two answers, Bob one of one."""
    answers = AnswerStore(backend.sessions())
    first = KeptAnswer(last="resp_2", conversation="resp_1", called=frozenset(), kept=KeptSearches())
    await answers.save("hers", ["resp_1", "resp_2"], first, "alice")
    await answers.save("his", ["resp_3"], replace(first, last="resp_3", conversation="resp_3"), "bob")
    return answers


@pytest.mark.requirement("openai.stored-answers")
async def test_an_answer_that_a_provider_keeps_goes_with_its_conversation(lasting: Backend) -> None:
    answers = await kept_answers(lasting)

    assert some(await forget_session(lasting.archive(), "resp_2", ENDPOINTS)) == {"session": 2}
    assert await answers.load("hers", "resp_1") is None
    assert await answers.load("his", "resp_3") is not None
    assert await answers.load("hers", "resp_3") is None


@pytest.mark.requirement("openai.stored-answers")
async def test_answers_that_a_provider_keeps_go_with_their_key(lasting: Backend) -> None:
    answers = await kept_answers(lasting)

    assert some(await forget_caller(lasting.archive(), "bob", ENDPOINTS)) == {"session": 1}
    assert await answers.load("his", "resp_3") is None
    found = await answers.load("hers", "resp_1")
    assert found is not None
    assert (found.last, found.kept) == ("resp_2", KeptSearches())


@pytest.mark.requirement("design.forget")
async def test_a_key_goes_with_its_days_its_sessions_and_what_they_spent(full: Backend) -> None:
    assert some(await forget_caller(full.archive(), "alice", ENDPOINTS)) == {"session": 2, "meter": 4, "habit": 1}

    assert "alice" not in repr(await held(full.archive()))
    assert "bob" in repr(await held(full.archive()))


async def test_what_is_held_for_a_key_goes_too(full: Backend) -> None:
    assert some(await forget_caller(full.archive(), "bob", ENDPOINTS)) == {"session": 1, "meter": 3, "hold": 1}


async def test_a_call_that_ends_after_its_key_was_forgotten_is_charged_to_nobody(lasting: Backend) -> None:
    spend = lasting.spend()
    reservation = await spend.reserve(Account(session="s", key="alice"), nano_usd(1), Limits())
    await forget_caller(lasting.archive(), "alice", ENDPOINTS)

    await spend.settle(reservation, nano_usd(1))

    assert await held(lasting.archive()) == []


async def test_a_server_goes_with_the_statistics_and_pins_of_its_tools(full: Backend) -> None:
    removed = await forget_tools(full.archive(), lambda server, _: server == "git")

    assert removed == {"statistics": 2, "pin": 2, "habit": 1}
    assert (await full.statistics().read()).keys() == (await full.pins().get(TOOLS)).keys() == {TOOLS[2]}


async def test_everything_goes(full: Backend) -> None:
    assert some(await forget_everything(full.archive())) == {
        "session": 3,
        "statistics": 3,
        "lesson": 1,
        "habit": 1,
        "meter": 7,
        "hold": 1,
        "pin": 3,
    }
    assert await held(full.archive()) == []


async def test_of_what_is_not_there_nothing_is_removed(full: Backend) -> None:
    before = await held(full.archive())
    archive = full.archive()

    removed = [
        await forget_session(archive, "nobody", ENDPOINTS),
        await forget_caller(archive, "ali", ENDPOINTS),
        await forget_tools(archive, lambda server, _: server == "gi"),
    ]

    assert [some(each) for each in removed] == [{}, {}, {}]
    assert await held(archive) == before


async def test_what_the_use_of_a_key_with_a_colon_in_its_name_taught_goes_with_it_alone(lasting: Backend) -> None:
    for caller in ("repo:org/app", "repo", ""):
        await lasting.habits().add({HabitKey(habits_of(caller, "mcp"), *TOOLS[0]): np.ones(3, np.float32)})

    assert some(await forget_caller(lasting.archive(), "repo", ENDPOINTS)) == {"habit": 1}
    assert some(await forget_caller(lasting.archive(), "repo:org/app", ENDPOINTS)) == {"habit": 1}
    assert len(await held(lasting.archive())) == 1


async def test_what_gateways_charge_to_a_session_and_to_a_callers_budgets_goes_with_them(lasting: Backend) -> None:
    spend, budget = lasting.spend(), BudgetSettings(day=1)
    ann, bob = (budget_account(budget, LimitedCaller(name=name)) for name in ("ann", "bob"))
    session = Account(session=hashlib.sha256(b"named:work").hexdigest())
    for account in (session, ann, bob):
        await spend.settle(await spend.reserve(account, nano_usd(1), Limits()), nano_usd(1))
        await spend.reserve(account, nano_usd(1), Limits())

    gone = await forget_session(lasting.archive(), "work", ENDPOINTS, ["named:work"])
    assert some(gone) == {"meter": 1, "hold": 1}
    assert some(await forget_caller(lasting.archive(), "ann", ENDPOINTS, [ann.key])) == {"meter": 3, "hold": 1}

    left = repr(await held(lasting.archive()))
    assert (session.session in left, ann.key in left, bob.key in left) == (False, False, True)
