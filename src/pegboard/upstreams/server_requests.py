"""Passes what a server asks and reports while it works to the client it works for, and to no other (M21)."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from pydantic import TypeAdapter, ValidationError

from pegboard.upstreams.request_origin import ORIGIN, Inputs, Origin

LOGGER = logging.getLogger(__name__)

ANSWER_SECONDS = 600.0
"""Seconds for a client to answer a question; the server's own time limit is paused meanwhile."""
LAST_WORDS = 10.0
"""Seconds for a client to receive messages sent before the answer."""
MOST_ROUNDS = 20
ASKED = "pegboard-asked:"
ASKED_BY: TypeAdapter[tuple[str, str | None]] = TypeAdapter(tuple[str, str | None])
"""The prefix of a request state with the server that it is for. Like every state, it is sealed before it is sent."""
QUESTIONS: TypeAdapter[dict[str, types.InputRequest]] = TypeAdapter(dict[str, types.InputRequest])
Result = dict[str, Any]
Answer = types.InputResponse | types.ErrorData
MULTI_ROUND = types.CallToolRequest | types.GetPromptRequest | types.ReadResourceRequest
ROOTS_SECONDS = 10.0
"""Seconds for a client to answer with its roots; a client without a stream for questions never does."""
AskRoots = Callable[[], Awaitable[types.ListRootsResult]]
MOST_WAITING = 100


@dataclass(slots=True, kw_only=True, eq=False)
class ActiveRequest:
    """One request in progress, with its time limit."""

    origin: Origin | None
    seconds: float
    limit: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _questions: int = 0
    _passing: int = 0
    _silent: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Replace the time limit while a client answers a question, or several."""
        self.limit.deadline = anyio.current_time() + ANSWER_SECONDS
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self.limit.deadline = anyio.current_time() + self.seconds

    @contextmanager
    def passing_on(self) -> Iterator[None]:
        """A message is being passed to the client."""
        self._passing += 1
        self._silent.clear()
        try:
            yield
        finally:
            self._passing -= 1
            if not self._passing:
                self._silent.set()

    async def drained(self) -> None:
        """Wait until everything received before the answer has been passed on."""
        await asyncio.sleep(0)
        if self._passing:
            with anyio.move_on_after(LAST_WORDS):
                await self._silent.wait()

    def reporting(self, tell: ProgressFnT | None) -> ProgressFnT | None:
        if tell is None:
            return None

        async def report(progress: float, total: float | None, message: str | None) -> None:
            with self.passing_on():
                await tell(progress, total, message)

        return report


class ServerRequests:
    """The requests and messages of one server's connection."""

    def __init__(self, server: str, clients: ConnectedClients | None = None) -> None:
        self._server = server
        self._clients = clients or ConnectedClients()
        self._under_way: list[ActiveRequest] = []

    @contextmanager
    def in_progress(self, seconds: float) -> Iterator[ActiveRequest]:
        """A request in progress, with at most ``seconds`` of the server's own time."""
        work = ActiveRequest(origin=ORIGIN.get(), seconds=seconds)
        work.limit.deadline = anyio.current_time() + seconds if math.isfinite(seconds) else math.inf
        self._under_way.append(work)
        try:
            yield work
        finally:
            self._under_way.remove(work)

    async def sampling(self, _ctx: ClientRequestContext, params: types.CreateMessageRequestParams) -> Answer:
        return await self._ask(types.CreateMessageRequest(params=params))

    async def elicitation(self, _ctx: ClientRequestContext, params: types.ElicitRequestParams) -> Answer:
        return await self._ask(types.ElicitRequest(params=params))

    async def roots(self, _ctx: ClientRequestContext) -> Answer:
        """A server may ask as soon as it is connected, when no request is in progress."""
        if not self._under_way:
            return await self._clients.roots()
        return await self._ask(types.ListRootsRequest())

    async def on_message(self, message: object) -> None:
        if isinstance(message, types.LoggingMessageNotification | types.ElicitCompleteNotification):
            work = self._work()
            if work is None or work.origin is None:
                LOGGER.debug("Server %s sent a message for an unknown client", self._server)
                return
            with work.passing_on():
                await work.origin.tell(message)

    async def _ask(self, request: types.ServerRequest) -> Answer:
        work = self._work()
        if work is None or work.origin is None:
            LOGGER.warning(
                "Server %s sent %s for an unknown client: with perClient each client has its own connection",
                self._server,
                request.method,
            )
            return types.ErrorData(
                code=types.INVALID_REQUEST,
                message="Several clients wait for this server, and it is not known which of them to ask. Call again, "
                "or ask the operator of the gateway to set perClient for this server.",
            )
        with work.waiting():
            return await work.origin.ask(request)

    def _work(self) -> ActiveRequest | None:
        """The request that a message belongs to: the one whose stream it came on, or the latest of the only client."""
        origin = ORIGIN.get()
        if origin is not None:
            return next((work for work in self._under_way if work.origin is origin), None)
        clients = {work.origin.client if work.origin else "" for work in self._under_way}
        return self._under_way[-1] if len(clients) == 1 else None


class ConnectedClients:
    """The connected clients, by session name. A question outside any request goes to the only client, if there is one.

    ``None`` stands for a client without roots.
    """

    def __init__(self) -> None:
        self._clients: dict[str, AskRoots | None] = {}

    def join(self, client: str, ask: AskRoots | None) -> None:
        self._clients[client] = ask

    def leave(self, client: str) -> bool:
        """Remove a client; whether it was connected."""
        return self._clients.pop(client, self) is not self

    def alone(self, client: str) -> ConnectedClients:
        """This client as the only one, whoever else is connected."""
        return OneClient(self._clients, client)

    def _asks(self) -> list[AskRoots | None]:
        return list(self._clients.values())

    async def roots(self) -> types.ListRootsResult:
        """The roots of the only client; none if there are several, since their folders must not mix."""
        asks = self._asks()
        if len(asks) == 1 and asks[0] is not None:
            try:
                with anyio.fail_after(ROOTS_SECONDS):
                    return await asks[0]()
            except (MCPError, ValidationError, TimeoutError) as error:
                LOGGER.info("The client did not answer with its roots: %s", str(error) or "no answer")
        return types.ListRootsResult(roots=[])


class OneClient(ConnectedClients):
    """One of the connected clients, for a connection that it has by itself."""

    def __init__(self, clients: dict[str, AskRoots | None], client: str) -> None:
        self._clients = clients
        self._client = client

    def _asks(self) -> list[AskRoots | None]:
        return [self._clients.get(self._client)]


class ProgressRelay:
    """Reports the progress of one call, in order, one report at a time.

    The SDK starts a task for each report, so a slow caller would accumulate tasks without limit. If more than
    ``MOST_WAITING`` reports wait, the oldest are dropped: later ones supersede them.
    """

    def __init__(self, report: ProgressFnT) -> None:
        self._report = report
        self._waiting: deque[tuple[float, float | None, str | None]] = deque(maxlen=MOST_WAITING)
        self._idle = asyncio.Event()
        self._idle.set()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self._waiting.append((progress, total, message))
        if not self._idle.is_set():
            return
        self._idle.clear()
        try:
            while self._waiting:
                await self._report(*self._waiting.popleft())
        finally:
            self._idle.set()


class InputRounds:
    """The rounds of one request to one server: a server of revision 2026-07-28 asks with a result, and is called again
    with the answers, which no other server gets.

    A client of the handshake era is asked at once. Another one gets the result, and sends its request again.
    """

    def __init__(self, request: types.ClientRequest | types.Request[Any, Any], server: str) -> None:
        self._request = request if isinstance(request, MULTI_ROUND) else None
        self._origin = ORIGIN.get()
        self._server = server
        self._left = MOST_ROUNDS
        self._inputs = Inputs()
        if self._origin is not None and self._request is not None:
            self._inputs = _brought(self._origin, server, self._request)

    def prepare(self) -> None:
        """Put the client's answers and the server's state in the request, before it is sent."""
        if self._origin is not None and self._request is not None:
            self._request.params.input_responses = self._inputs.responses
            self._request.params.request_state = self._inputs.state

    async def are_over(self, result: Result) -> bool:
        """Whether this result is the client's; if not, the client has been asked, and the request is to be sent again.

        Raises MCPError if the client cannot answer, and after too many rounds.
        """
        origin = self._origin
        if origin is None or not self._asks(result) or not origin.takes_requests:
            return True
        questions = QUESTIONS.validate_python(result.get("inputRequests") or {}, by_name=False)
        answers = {key: _given(await origin.ask(question)) for key, question in questions.items()}
        self._inputs = Inputs(responses=answers, state=result.get("requestState"))
        self._left -= 1
        if not self._left:
            raise MCPError(types.INTERNAL_ERROR, f"The server asked {MOST_ROUNDS} times and did not answer.")
        return False

    def given(self, result: Result) -> Result:
        """The result as the client gets it: a question with the server's name in its state, for the answers."""
        if self._origin is None or not self._asks(result):
            return result
        return result | {"requestState": ASKED + json.dumps([self._server, result.get("requestState")])}

    def _asks(self, result: Result) -> bool:
        return self._request is not None and result.get("resultType") == "input_required"


def _brought(origin: Origin, server: str, request: types.ClientRequest | types.Request[Any, Any]) -> Inputs:
    """What the client's request brought for this server, once.

    Answers come with the state of a question, and are for the server that asked. Answers without any state are for the
    tool or the prompt that the client names. Raises MCPError for a state that was changed.
    """
    brought = origin.inputs
    if brought.state is None and not isinstance(request, types.ReadResourceRequest):
        origin.inputs = Inputs()
        return brought
    if brought.state is None or not brought.state.startswith(ASKED):
        return Inputs()
    try:
        asked_by, state = ASKED_BY.validate_json(brought.state.removeprefix(ASKED))
    except ValueError:
        raise MCPError(types.INVALID_PARAMS, "requestState is not as it was given: start again.") from None
    if asked_by != server:
        return Inputs()
    origin.inputs = Inputs()
    return Inputs(responses=brought.responses, state=state)


def _given(answer: Answer) -> types.InputResponse:
    if isinstance(answer, types.ErrorData):
        raise MCPError.from_error_data(answer)
    return answer
