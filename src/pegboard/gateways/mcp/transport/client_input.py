"""Requests from servers to the client whose request is in progress: sent at once, or returned with a result that asks
for input (MCP 2026-07-28)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.upstreams import ORIGIN, Inputs
from pegboard.upstreams.client_levels import LEVELS

Context = ServerRequestContext[Any, Any]
Answer = types.InputResponse | types.ErrorData
Result = dict[str, Any]
Params = types.CallToolRequestParams | types.GetPromptRequestParams | types.ReadResourceRequestParams
PARKED = "pegboard:"
"""The prefix of the request state of a parked request. Like every state, it is sealed before it is sent."""
PARKED_SECONDS = 600.0
MOST_PARKED = 1000
Work = Callable[[], Awaitable[Result]]


class ClientOrigin:
    """The `Origin` of upstream requests that are made for one client request.

    ``level`` is the lowest log level that a client of the handshake era wants; None is every level. A client of
    revision 2026-07-28 takes no requests: ``questions`` collects them, `PendingInputs` returns them with a result, and
    the work continues when the client has answered.
    """

    def __init__(self, ctx: Context, caller: Caller, *, level: types.LoggingLevel | None = None) -> None:
        self.inputs = Inputs()
        self.questions: dict[str, types.InputRequest] = {}
        self.asked: Callable[[], None] = lambda: None
        """Called with each question."""
        self._answers: dict[str, asyncio.Future[types.InputResponse]] = {}
        self._ctx: Context | None = ctx
        self._modern = caller.modern
        self._level = level
        self._name = caller.session or uuid4().hex
        self.caller = caller
        self.named = caller.session is not None

    @property
    def client(self) -> str:
        return self._name

    @property
    def task(self) -> dict[str, Any] | None:
        """A client of revision 2026-07-28 does not ask for tasks: it says that it takes them (SEP-2663)."""
        wanted = None if self._modern or self._ctx is None else (self._ctx.params or {}).get("task")
        return wanted if isinstance(wanted, dict) else None

    @property
    def takes_requests(self) -> bool:
        return not self._modern

    @property
    def capabilities(self) -> types.ClientCapabilities:
        said = None if self._ctx is None else self._ctx.session.client_capabilities
        return said or types.ClientCapabilities()

    def token_of(self, user: str) -> str:
        """A connection that outlives the request must not use its token then."""
        holder = self.caller.holder
        return "" if self._ctx is None or holder is None or holder.user != user else holder.token

    @property
    def can_be_asked(self) -> bool:
        """Whether the client has declared anything that a server may ask it."""
        can = self.capabilities
        return can.sampling is not None or can.elicitation is not None or can.roots is not None

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Within it, requests and notifications from servers are for this client."""
        token = ORIGIN.set(self)
        try:
            yield
        finally:
            ORIGIN.reset(token)

    def over(self) -> None:
        """The request has its answer: let go of it. The SDK keeps the context of the last message of a connection, and
        with it what was set there."""
        self._ctx = None

    def retried(self, ctx: Context, caller: Caller, answers: types.InputResponses) -> None:
        """The client has sent its request again, with these answers and perhaps a renewed token; answered questions are
        removed. Those that the server has withdrawn meanwhile are ignored."""
        self._ctx, self.caller = ctx, caller
        for key in self.questions.keys() & answers.keys():
            del self.questions[key]
            waiting = self._answers.pop(key, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answers[key])

    async def ask(self, request: types.ServerRequest) -> Answer:
        if refused := unable(self.capabilities, request):
            return types.ErrorData(code=types.INVALID_REQUEST, message=refused)
        if self._ctx is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message="The request has its answer.")
        if self._modern:
            return await self._ask_with_result(request)
        where = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        try:
            return await self._ctx.session.send_request(request, _result_of(request), metadata=where)
        except MCPError as error:
            return error.error

    async def tell(self, message: types.ServerNotification) -> None:
        ctx = self._ctx
        if ctx is None:
            return
        if isinstance(message, types.LoggingMessageNotification) and message.params.level not in self._heard(ctx):
            return
        await ctx.session.send_notification(message, related_request_id=ctx.request_id)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Reports progress of the open request; the SDK drops it if the caller asked for none (M17)."""
        if self._ctx is not None:
            await self._ctx.session.report_progress(progress, total, message)

    @property
    def log_level(self) -> types.LoggingLevel | None:
        """The lowest level that a server of revision 2026-07-28 should log; None for no logs."""
        if self._modern:
            level: types.LoggingLevel | None = _meta(self._ctx).get(types.LOG_LEVEL_META_KEY)
            return level
        return self._level or "info"

    def _heard(self, ctx: Context) -> frozenset[types.LoggingLevel]:
        if self._modern:
            return allowed_log_levels(ctx.protocol_version, _meta(ctx))
        return frozenset(LEVELS[LEVELS.index(self._level or LEVELS[0]) :])

    async def _ask_with_result(self, request: types.ServerRequest) -> Answer:
        if isinstance(request, types.PingRequest):
            return types.ErrorData(code=types.INVALID_REQUEST, message="This client takes no requests.")
        key = uuid4().hex
        answer: asyncio.Future[types.InputResponse] = asyncio.get_running_loop().create_future()
        self._answers[key] = answer
        self.questions[key] = request
        self.asked()
        try:
            return await answer
        finally:
            self.questions.pop(key, None)
            self._answers.pop(key, None)


@dataclass(slots=True, kw_only=True)
class Parked:
    """A request in progress that waits for its client to send it again with answers."""

    origin: ClientOrigin
    task: asyncio.Task[Result]
    scope: anyio.CancelScope
    late: asyncio.TimerHandle | None = None

    @classmethod
    def begun(cls, origin: ClientOrigin, work: Work) -> Parked:
        """A bare `Task.cancel` would break into what is shielded, such as a charge that is being held."""
        scope = anyio.CancelScope()
        return cls(origin=origin, task=asyncio.create_task(_within(scope, work)), scope=scope)


class PendingInputs:
    """The requests of all clients that wait for input from their clients. ``process`` is where they wait, if there are
    several."""

    def __init__(self) -> None:
        self.process = ""
        self._parked: dict[str, Parked] = {}

    async def result(self, ctx: Context, params: Params | None, origin: ClientOrigin, work: Work) -> Result:
        """The result of ``work``, which is done for ``origin``, or the questions that it must answer first. ``params``
        is None for a request without answers to earlier questions.

        Raises MCPError for a state that is no longer known, and for answers that are not an object.
        """
        if params is not None and params.input_responses is None and "inputResponses" in (ctx.params or {}):
            raise MCPError(types.INVALID_PARAMS, "inputResponses must be an object")
        if params is not None and not origin.takes_requests:
            state = params.request_state
            if state is not None and state.startswith(PARKED):
                return await self._next(self._again(ctx, origin.caller, state, params.input_responses or {}))
            origin.inputs = Inputs(responses=params.input_responses, state=state)
        if origin.takes_requests or not origin.can_be_asked:
            try:
                with origin.answering():
                    return await work()
            finally:
                origin.over()
        with origin.answering():
            return await self._next(Parked.begun(origin, work))

    def close(self) -> None:
        for key in list(self._parked):
            self._give_up(key)

    def _again(self, ctx: Context, caller: Caller, state: str, answers: types.InputResponses) -> Parked:
        parked = self._parked.pop(state, None)
        if parked is None:
            raise MCPError(types.INVALID_PARAMS, "The request these answers belong to has expired: start again.")
        if parked.late is not None:
            parked.late.cancel()
        parked.origin.retried(ctx, caller, answers)
        return parked

    async def _next(self, parked: Parked) -> Result:
        """Waits until it is done or has questions."""
        turn = asyncio.get_running_loop().create_future()

        def over(_task: asyncio.Task[Result] | None = None) -> None:
            if not turn.done():
                turn.set_result(None)

        parked.task.add_done_callback(over)
        parked.origin.asked = over
        try:
            if not parked.origin.questions:
                await turn
        except asyncio.CancelledError:
            parked.scope.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({parked.task})
            raise
        finally:
            parked.task.remove_done_callback(over)
        if not parked.task.done():
            return self._park(parked)
        parked.origin.over()
        return parked.task.result()

    def _park(self, parked: Parked) -> Result:
        while len(self._parked) >= MOST_PARKED:
            self._give_up(self._oldest_of_most())
        key = f"{PARKED}{self.process}:{uuid4().hex}"
        self._parked[key] = parked
        parked.late = asyncio.get_running_loop().call_later(PARKED_SECONDS, self._give_up, key)
        questions = {
            name: each.model_dump(by_alias=True, mode="json", exclude_none=True)
            for name, each in parked.origin.questions.items()
        }
        return {"resultType": "input_required", "inputRequests": questions, "requestState": key}

    def _oldest_of_most(self) -> str:
        """The oldest request of the caller with most of them."""
        counts = Counter(each.origin.caller.limited for each in self._parked.values())
        most = max(counts, key=counts.__getitem__)
        return next(key for key, each in self._parked.items() if each.origin.caller.limited == most)

    def _give_up(self, key: str) -> None:
        parked = self._parked.pop(key, None)
        if parked is not None:
            if parked.late is not None:
                parked.late.cancel()
            parked.scope.cancel()


def process_of(state: str) -> str:
    """The process in which the request with this state waits; empty for a state of a server.

    >>> process_of("pegboard:b2c4:77"), process_of("a server's own")
    ('b2c4', '')
    """
    return state.removeprefix(PARKED).rpartition(":")[0] if state.startswith(PARKED) else ""


def unable(capabilities: types.ClientCapabilities, request: types.ServerRequest) -> str:
    """Why a client cannot answer this request, or an empty string: only declared capabilities may be used."""
    match request:
        case types.CreateMessageRequest(params=params):
            sampling = capabilities.sampling
            if sampling is None:
                return "Sampling not supported"
            if (params.tools or params.tool_choice) and sampling.tools is None:
                return "Sampling with tools not supported"
        case types.ElicitRequest(params=wanted):
            elicitation = capabilities.elicitation
            if elicitation is None:
                return "Elicitation not supported"
            if wanted.mode == "url" and elicitation.url is None:
                return "Elicitation by URL not supported"
        case types.ListRootsRequest():
            if capabilities.roots is None:
                return "List roots not supported"
    return ""


def _result_of(request: types.ServerRequest) -> type[Any]:
    match request:
        case types.CreateMessageRequest(params=params):
            with_tools = params.tools or params.tool_choice
            return types.CreateMessageResultWithTools if with_tools else types.CreateMessageResult
        case types.ElicitRequest():
            return types.ElicitResult
        case types.ListRootsRequest():
            return types.ListRootsResult
    return types.EmptyResult


def _meta(ctx: Context | None) -> dict[str, Any]:
    return {} if ctx is None else (ctx.params or {}).get("_meta") or {}


async def _within(scope: anyio.CancelScope, work: Work) -> Result:
    with scope:
        return await work()
    raise asyncio.CancelledError
