"""Calls that wait for a client which can only be asked with a result."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.gateways.mcp.transport.client_input import PARKED, ClientOrigin, PendingInputs
from pegboard.upstreams import ORIGIN
from processes import until

FORM = types.ElicitRequestFormParams(message="A word?", requested_schema={"type": "object", "properties": {}})
CAPABILITIES = types.ClientCapabilities(elicitation=types.ElicitationCapability(form=types.FormElicitationCapability()))


def context(**params: Any) -> Any:
    session = SimpleNamespace(client_capabilities=CAPABILITIES)
    return SimpleNamespace(session=session, params=params, request_id=1, protocol_version="2026-07-28")


def call(state: str | None = None, **words: str) -> types.CallToolRequestParams:
    answers: Any = {key: types.ElicitResult(action="accept", content={"word": word}) for key, word in words.items()}
    return types.CallToolRequestParams(name="t", request_state=state, input_responses=answers or None)


def client() -> ClientOrigin:
    return ClientOrigin(context(), Caller(session="s", modern=True))


async def asks_twice_at_once() -> dict[str, Any]:
    """What a server does that asks two things and goes on when it has both."""
    origin = ORIGIN.get()
    assert origin is not None
    told = await asyncio.gather(*(origin.ask(types.ElicitRequest(params=FORM)) for _ in range(2)))
    return {"words": sorted(each.content["word"] for each in told)}  # type: ignore[union-attr,index]


@pytest.mark.requirement("M21")
async def test_a_call_goes_on_when_everything_was_answered_and_asks_again_for_what_was_not() -> None:
    rounds = PendingInputs()
    first = await rounds.result(context(), call(), client(), asks_twice_at_once)
    while len(first["inputRequests"]) < 2:
        first = await rounds.result(context(), call(first["requestState"]), client(), asks_twice_at_once)
    one, two = first["inputRequests"]
    second = await rounds.result(context(), call(first["requestState"], **{one: "a"}), client(), asks_twice_at_once)
    third = await rounds.result(context(), call(second["requestState"], **{two: "b"}), client(), asks_twice_at_once)

    assert (first["resultType"], list(second["inputRequests"])) == ("input_required", [two])
    assert first["requestState"].startswith(PARKED)
    assert third == {"words": ["a", "b"]}


@pytest.mark.parametrize("finished", [True, False])
async def test_a_call_whose_server_withdraws_its_question_gives_its_result_to_whoever_answers(finished: bool) -> None:
    questions: list[asyncio.Task[object]] = []

    async def asks_in_vain() -> dict[str, Any]:
        origin = ORIGIN.get()
        assert origin is not None
        questions.append(asyncio.create_task(origin.ask(types.ElicitRequest(params=FORM))))
        await asyncio.wait(questions)
        return {"done": True}

    rounds = PendingInputs()
    first = await rounds.result(context(), call(), client(), asks_in_vain)
    state, (question,) = first["requestState"], first["inputRequests"]
    questions[0].cancel()
    if finished:
        await until(rounds._parked[state].task.done)

    assert await rounds.result(context(), call(state, **{question: "a"}), client(), asks_in_vain) == {"done": True}


async def test_a_question_that_was_withdrawn_is_not_asked_again() -> None:
    asked: list[asyncio.Task[object]] = []

    async def asks_two_things() -> dict[str, Any]:
        origin = ORIGIN.get()
        assert origin is not None
        asked.extend(asyncio.create_task(origin.ask(types.ElicitRequest(params=FORM))) for _ in range(2))
        await asyncio.wait(asked)
        return {}

    rounds = PendingInputs()
    first = await rounds.result(context(), call(), client(), asks_two_things)
    parked = rounds._parked[first["requestState"]]
    await until(lambda: len(parked.origin.questions) == 2)
    left = list(parked.origin.questions)[1]
    asked[0].cancel()
    await until(asked[0].done)
    second = await rounds.result(context(), call(first["requestState"]), client(), asks_two_things)

    assert list(second["inputRequests"]) == [left]
    rounds.close()


async def test_one_caller_who_never_answers_takes_no_other_callers_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pegboard.gateways.mcp.transport.client_input.MOST_PARKED", 5)
    rounds = PendingInputs()
    first = await rounds.result(context(), call(), client(), asks_twice_at_once)
    eve = Holder(name="eve", secret="x")
    for _ in range(9):
        await rounds.result(
            context(), call(), ClientOrigin(context(), Caller(modern=True, holder=eve)), asks_twice_at_once
        )

    assert (first["requestState"] in rounds._parked, len(rounds._parked)) == (True, 5)
    rounds.close()


@pytest.mark.requirement("M21")
async def test_answers_that_nobody_waits_for_are_refused_and_so_is_a_second_time() -> None:
    rounds = PendingInputs()
    first = await rounds.result(context(), call(), client(), asks_twice_at_once)
    state = first["requestState"]
    await rounds.result(context(), call(state), client(), asks_twice_at_once)

    for unknown in (state, f"{PARKED}unknown"):
        with pytest.raises(MCPError, match="start again"):
            await rounds.result(context(), call(unknown, q="a"), client(), asks_twice_at_once)
    rounds.close()


async def test_answers_that_are_no_object_are_refused() -> None:
    with pytest.raises(MCPError, match="must be an object"):
        await PendingInputs().result(context(inputResponses=None), call(), client(), asks_twice_at_once)


@pytest.mark.requirement("M22")
async def test_a_call_whose_client_leaves_is_given_up_and_so_are_those_that_wait_at_the_end() -> None:
    started, given_up = asyncio.Event(), asyncio.Event()

    async def work() -> dict[str, Any]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return {}

    rounds = PendingInputs()
    asking = asyncio.create_task(rounds.result(context(), call(), client(), work))
    await started.wait()
    asking.cancel()
    await given_up.wait()

    async def asks() -> dict[str, Any]:
        try:
            return await asks_twice_at_once()
        finally:
            given_up.set()

    given_up.clear()
    await rounds.result(context(), call(), client(), asks)
    rounds.close()
    await given_up.wait()


async def test_a_client_that_can_be_asked_nothing_is_served_without_a_task_of_its_own() -> None:
    mute = context()
    mute.session.client_capabilities = types.ClientCapabilities()
    tasks: list[object] = []

    async def work() -> dict[str, Any]:
        tasks.append(asyncio.current_task())
        origin = ORIGIN.get()
        assert origin is not None
        return {"told": await origin.ask(types.ElicitRequest(params=FORM))}

    origin = ClientOrigin(mute, Caller(session="s", modern=True))
    result = await PendingInputs().result(mute, None, origin, work)
    assert tasks == [asyncio.current_task()]
    assert result["told"].message == "Elicitation not supported"
