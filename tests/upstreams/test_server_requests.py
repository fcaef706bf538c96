"""What one connection's server asks belongs to one client, or to nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError

from pegboard.upstreams import ORIGIN, Inputs
from pegboard.upstreams.server_requests import ASKED, MOST_ROUNDS, InputRounds, ServerRequests

QUESTION = types.ElicitRequestFormParams(message="A word?", requested_schema={"type": "object", "properties": {}})
NO_CONTEXT: Any = None


class Client:
    """An origin that answers with its name, and keeps what it is told."""

    def __init__(self, name: str, *, takes_requests: bool = True) -> None:
        self.client = name
        self.named = True
        self.takes_requests = takes_requests
        self.capabilities = types.ClientCapabilities()
        self.inputs = Inputs()
        self.told: list[Any] = []

    async def ask(self, request: types.ServerRequest) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"word": self.client})

    async def tell(self, message: types.ServerNotification) -> None:
        self.told.append(message.params.data)  # type: ignore[union-attr]


@contextmanager
def for_client(client: Client | None) -> Iterator[None]:
    token = ORIGIN.set(client)
    try:
        yield
    finally:
        ORIGIN.reset(token)


def word(answer: Any) -> str:
    return str(answer.content["word"])


def log(text: str) -> types.LoggingMessageNotification:
    return types.LoggingMessageNotification(params=types.LoggingMessageNotificationParams(level="info", data=text))


@pytest.mark.requirement("M21")
async def test_a_question_in_a_requests_own_stream_is_its_clients_whoever_else_is_there() -> None:
    asked, ann, bob = ServerRequests("s"), Client("ann"), Client("bob")
    with for_client(bob), asked.in_progress(9), for_client(ann), asked.in_progress(9):
        assert word(await asked.elicitation(NO_CONTEXT, QUESTION)) == "ann"


@pytest.mark.requirement("M21")
async def test_where_calls_of_one_client_alone_are_under_way_it_is_asked() -> None:
    asked, ann = ServerRequests("s"), Client("ann")
    with for_client(ann), asked.in_progress(9), asked.in_progress(9), for_client(None):
        assert word(await asked.elicitation(NO_CONTEXT, QUESTION)) == "ann"


@pytest.mark.requirement("M21")
async def test_where_it_is_not_known_whom_to_ask_or_tell_nobody_is() -> None:
    asked, ann, bob = ServerRequests("s"), Client("ann"), Client("bob")
    with for_client(bob), asked.in_progress(9), for_client(ann), asked.in_progress(9), for_client(None):
        refused = await asked.elicitation(NO_CONTEXT, QUESTION)
        await asked.on_message(log("whose?"))

    assert isinstance(refused, types.ErrorData)
    assert ann.told == bob.told == []


@pytest.mark.requirement("M21")
async def test_nobody_is_asked_after_its_call() -> None:
    asked, ann = ServerRequests("s"), Client("ann")
    with for_client(ann), asked.in_progress(9):
        await asked.on_message(log("in time"))
    with for_client(Client("bob")), asked.in_progress(9), for_client(ann):
        refused = await asked.elicitation(NO_CONTEXT, QUESTION)
        await asked.on_message(log("too late"))

    assert isinstance(refused, types.ErrorData)
    assert ann.told == ["in time"]


async def test_a_server_that_asks_for_roots_before_any_call_is_told_that_there_are_none() -> None:
    assert await ServerRequests("s").roots(NO_CONTEXT) == types.ListRootsResult(roots=[])


@pytest.mark.requirement("M22")
async def test_the_servers_time_stands_still_while_a_question_is_open() -> None:
    asked, ann = ServerRequests("s"), Client("ann")
    with for_client(ann), asked.in_progress(5) as work:
        before = work.limit.deadline
        with work.waiting():
            assert work.limit.deadline > before + 500
        assert before <= work.limit.deadline < before + 100


async def test_an_answer_leaves_the_time_of_another_open_question_as_it_is() -> None:
    asked, ann = ServerRequests("s"), Client("ann")
    with for_client(ann), asked.in_progress(5) as work:
        before = work.limit.deadline
        with work.waiting():
            with work.waiting():
                pass
            assert work.limit.deadline > before + 500
        assert before <= work.limit.deadline < before + 100


async def test_what_was_said_before_the_answer_has_arrived_before_it() -> None:
    asked, ann, order = ServerRequests("s"), Client("ann"), []

    async def slowly(*_step: Any) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        order.append("progress")

    with for_client(ann), asked.in_progress(9) as work:
        report = work.reporting(slowly)
        assert report is not None
        telling = asyncio.ensure_future(report(1, 3, None))
        await work.drained()
        order.append("answer")
        await telling
    assert order == ["progress", "answer"]


def call() -> types.CallToolRequest:
    return types.CallToolRequest(params=types.CallToolRequestParams(name="t"))


async def in_rounds(request: types.CallToolRequest, send: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """As an upstream sends a request."""
    rounds = InputRounds(request, "s")
    while True:
        rounds.prepare()
        result = await send()
        if await rounds.are_over(result):
            return result


REQUIRED = {
    "resultType": "input_required",
    "inputRequests": {"q": types.ElicitRequest(params=QUESTION).model_dump(by_alias=True, exclude_none=True)},
    "requestState": "S",
}


async def test_a_client_that_takes_requests_is_asked_and_the_server_called_again_with_its_answer_and_state() -> None:
    request, results = call(), iter([REQUIRED, {"content": []}])

    async def send() -> dict[str, Any]:
        return next(results)

    with for_client(Client("ann")):
        assert await in_rounds(request, send) == {"content": []}
    assert request.params.input_responses is not None
    assert word(request.params.input_responses["q"]) == "ann"
    assert request.params.request_state == "S"


async def test_a_client_that_comes_again_by_itself_gets_the_question_as_it_is() -> None:
    async def send() -> dict[str, Any]:
        return REQUIRED

    with for_client(Client("ann", takes_requests=False)):
        assert await in_rounds(call(), send) is REQUIRED


async def test_a_server_that_never_stops_asking_is_an_error() -> None:
    times = 0

    async def send() -> dict[str, Any]:
        nonlocal times
        times += 1
        return REQUIRED

    with for_client(Client("ann")), pytest.raises(MCPError, match="did not answer"):
        await in_rounds(call(), send)
    assert times == MOST_ROUNDS


async def test_the_answers_of_a_client_that_comes_again_are_for_the_server_that_asked_and_for_one_request() -> None:
    ann = Client("ann", takes_requests=False)
    with for_client(ann):
        asked = InputRounds(call(), "asks").given(REQUIRED)
    answers: Any = {"q": types.ElicitResult(action="accept", content={"word": "ann"})}
    again = Client("ann", takes_requests=False)
    again.inputs = Inputs(responses=answers, state=asked["requestState"])
    brought = []
    with for_client(again):
        for server in ("other", "asks", "asks"):
            request = call()
            InputRounds(request, server).prepare()
            brought.append((request.params.input_responses, request.params.request_state))

    assert asked["inputRequests"] == REQUIRED["inputRequests"]
    assert brought == [(None, None), (answers, "S"), (None, None)]


@pytest.mark.parametrize("changed", ["", "x", "5", "[]", '["asks"]', '["asks", 5]', '{"asks": "S"}'])
async def test_a_state_that_was_changed_is_an_error(changed: str) -> None:
    again = Client("ann", takes_requests=False)
    again.inputs = Inputs(responses={}, state=f"{ASKED}{changed}")
    with for_client(again), pytest.raises(MCPError, match="requestState is not as it was given"):
        InputRounds(call(), "asks")


async def test_a_result_that_asks_nothing_is_given_as_it_is() -> None:
    result = {"resultType": "complete", "content": []}
    with for_client(Client("ann", takes_requests=False)):
        assert InputRounds(call(), "s").given(result) is result
