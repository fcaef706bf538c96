"""Calls that wait for a client which can only be asked with a result."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.gateways.mcp.transport.client_input import PARKED, ClientOrigin, PendingInputs
from pegboard.settings.server_spec import ServerSpec
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


async def test_a_call_goes_on_with_the_token_that_came_with_the_answers() -> None:
    """The one with which it began may have ended while the person was asked."""

    def client_with(token: str) -> ClientOrigin:
        holder = Holder(name="ann", secret="rights", user="ann's id", token=token)
        return ClientOrigin(context(), Caller(modern=True, holder=holder))

    async def asks() -> dict[str, Any]:
        origin = ORIGIN.get()
        assert origin is not None
        before = origin.token_of("ann's id")
        await origin.ask(types.ElicitRequest(params=FORM))
        return {"tokens": [before, origin.token_of("ann's id")]}

    rounds = PendingInputs()
    first = await rounds.result(context(), call(), client_with("first"), asks)
    [question] = first["inputRequests"]
    answered = call(first["requestState"], **{question: "a"})

    assert await rounds.result(context(), answered, client_with("renewed"), asks) == {"tokens": ["first", "renewed"]}


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


async def test_a_client_that_leaves_does_not_break_into_what_its_call_shields() -> None:
    started, go_on, paid = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> dict[str, Any]:
        with anyio.CancelScope(shield=True):
            started.set()
            await go_on.wait()
            paid.set()
        await asyncio.Event().wait()
        return {}

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(PendingInputs().result, context(), call(), client(), work)
        await started.wait()
        tasks.cancel_scope.cancel()
        asyncio.get_running_loop().call_later(0.05, go_on.set)
    assert paid.is_set()


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


OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
ASKS = """
import json, sys
name, journal, kind = sys.argv[1:]
envelope = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
question = {"method": "elicitation/create", "params": {"message": name, "requestedSchema": {"type": "object",
            "properties": {"word": {"type": "string"}}}}}
found = {
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "resources": {}}},
    "tools/list": {"tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "tools/call": {"content": [{"type": "text", "text": name}]},
    "resources/read": {"contents": [{"uri": "note://x", "text": name}]},
}
for line in sys.stdin:
    message = json.loads(line)
    method, params = message["method"], message.get("params", {})
    said = {"result": found[method] | envelope} if method in found else {"error": {"code": -32601, "message": "no"}}
    if method in ("tools/call", "resources/read"):
        brought = {key: params[key] for key in ("inputResponses", "requestState") if key in params}
        with open(journal, "a") as file:
            file.write(json.dumps(brought) + "\\n")
        if kind != "tells" and not brought:
            state = {"requestState": f"state of {name}"}
            said["result"] = {"resultType": "input_required", "inputRequests": {"q": question}} | state
        elif kind == "fails":
            said = {"error": {"code": -32000, "message": "it is broken"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | said), flush=True)
"""


class AskingServer:
    """A server of 2026-07-28 that writes down which answers and state each request brought.

    ``kind`` is `asks`, `fails` for one that fails when it has its answer, and `tells` for one that asks nothing.
    """

    def __init__(self, name: str, folder: Path, kind: str = "asks") -> None:
        self._journal = folder / f"{name}.journal"
        self.spec = ServerSpec(name=name, command=sys.executable, args=("-c", ASKS, name, str(self._journal), kind))

    @property
    def brought(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._journal.read_text("utf-8").splitlines()]


async def answers_with_its_name(_ctx: object, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"word": f"for {params.message}"})


def answered(name: str) -> dict[str, Any]:
    """What the request brings that follows this server's question."""
    answer = {"action": "accept", "content": {"word": f"for {name}"}}
    return {"inputResponses": {"q": answer}, "requestState": f"state of {name}"}


AT_ONCE = "import asyncio\nprint(await asyncio.gather(alpha(), beta()))"


@pytest.mark.parametrize("program", ["print(await alpha())\nprint(await beta())", AT_ONCE])
@pytest.mark.parametrize("era", ["legacy"], indirect=True)
async def test_what_the_user_answers_to_one_server_reaches_no_other_that_the_same_program_calls(
    client_of: OpenClient, tmp_path: Path, program: str
) -> None:
    alpha, beta = AskingServer("alpha", tmp_path), AskingServer("beta", tmp_path)
    async with client_of(alpha.spec, beta.spec, asked=answers_with_its_name, programs="on") as client:
        done = await client.call_tool("run_program", {"program": program})

    assert not done.is_error, done.content
    assert alpha.brought == [{}, answered("alpha")]
    assert beta.brought == [{}, answered("beta")]


async def test_what_the_user_answers_to_a_server_that_then_fails_does_not_reach_the_next_one(
    client_of: OpenClient, tmp_path: Path
) -> None:
    fails, tells = AskingServer("fails", tmp_path, "fails"), AskingServer("tells", tmp_path, "tells")
    async with client_of(fails.spec, tells.spec, asked=answers_with_its_name) as client:
        await client.list_tools()
        found = await client.read_resource("note://x")

    assert found.contents[0].text == "tells"  # type: ignore[union-attr]
    assert fails.brought == [{}, answered("fails")]
    assert tells.brought == [{}]


async def test_a_server_of_2026_gets_the_answers_to_its_own_questions_in_both_eras(
    client_of: OpenClient, tmp_path: Path
) -> None:
    server = AskingServer("asks", tmp_path)
    async with client_of(server.spec, asked=answers_with_its_name, exposure="eager") as client:
        done = await client.call_tool("asks", {})

    assert [block.text for block in done.content if isinstance(block, types.TextContent)] == ["asks"]
    assert server.brought == [{}, answered("asks")]


UNASKED: Any = {"q": types.ElicitResult(action="accept", content={"word": "unasked"})}


@pytest.mark.parametrize("era", ["auto"], indirect=True)
async def test_answers_without_a_state_reach_the_tool_that_the_client_names(
    client_of: OpenClient, tmp_path: Path
) -> None:
    server = AskingServer("asks", tmp_path)
    async with client_of(server.spec, exposure="eager") as client:
        done = await client.session.call_tool("asks", {}, input_responses=UNASKED)

    assert [block.text for block in done.content if isinstance(block, types.TextContent)] == ["asks"]
    assert server.brought == [{"inputResponses": {"q": {"action": "accept", "content": {"word": "unasked"}}}}]


@pytest.mark.parametrize("era", ["auto"], indirect=True)
async def test_answers_without_a_state_reach_no_server_of_a_program_or_a_resource(
    client_of: OpenClient, tmp_path: Path
) -> None:
    server = AskingServer("tells", tmp_path, "tells")
    async with client_of(server.spec, programs="on") as client:
        program = {"program": "print(await tells())"}
        done = await client.session.call_tool("run_program", program, input_responses=UNASKED)
        await client.session.read_resource("note://x", input_responses=UNASKED)

    assert not done.is_error, done.content
    assert server.brought == [{}, {}]
