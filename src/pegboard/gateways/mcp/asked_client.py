"""A client whose request is under way, as the servers behind the board see it: asked, told, and kept informed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, get_args
from uuid import uuid4

import mcp_types as types
from mcp import MCPError
from mcp.server.connection import allowed_log_levels
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

from pegboard.gateways.mcp.caller import Caller
from pegboard.upstreams import ORIGIN, Inputs

Context = ServerRequestContext[Any, Any]
Answer = types.InputResponse | types.ErrorData

LEVELS: tuple[types.LoggingLevel, ...] = get_args(types.LoggingLevel)
"""From `debug` to `emergency`."""


class AskedClient:
    """An `Origin`. ``level`` is what a client of the handshake era wants to hear at least; None is everything.

    A client of revision 2026-07-28 takes no requests: what it is asked stands in ``questions``, which `Rounds` sends
    with a result, and goes on when it has been answered.
    """

    def __init__(self, ctx: Context, caller: Caller, *, level: types.LoggingLevel | None = None) -> None:
        self.inputs = Inputs()
        self.questions: dict[str, types.InputRequest] = {}
        self.asked = asyncio.Event()
        self._answers: dict[str, asyncio.Future[types.InputResponse]] = {}
        self._ctx = ctx
        self._modern = caller.modern
        self._level = level
        self._name = caller.session or uuid4().hex
        self.named = caller.session is not None

    @property
    def client(self) -> str:
        return self._name

    @property
    def takes_requests(self) -> bool:
        return not self._modern

    @property
    def capabilities(self) -> types.ClientCapabilities:
        return self._ctx.session.client_capabilities or types.ClientCapabilities()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Within it, what servers ask and say belongs to this client."""
        token = ORIGIN.set(self)
        try:
            yield
        finally:
            ORIGIN.reset(token)

    def comes_again(self, ctx: Context, answers: types.InputResponses) -> None:
        """The next round of its request: what it answers is no question any more."""
        self._ctx = ctx
        for key in self.questions.keys() & answers.keys():
            del self.questions[key]
            self._answers.pop(key).set_result(answers[key])
        if not self.questions:
            self.asked.clear()

    async def ask(self, request: types.ServerRequest) -> Answer:
        if refused := unable(self.capabilities, request):
            return types.ErrorData(code=types.INVALID_REQUEST, message=refused)
        if self._modern:
            return await self._ask_with_result(request)
        where = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        try:
            return await self._ctx.session.send_request(request, _result_of(request), metadata=where)
        except MCPError as error:
            return error.error

    async def tell(self, message: types.ServerNotification) -> None:
        if isinstance(message, types.LoggingMessageNotification) and message.params.level not in self._heard():
            return
        await self._ctx.session.send_notification(message, related_request_id=self._ctx.request_id)

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """To the request that is open now; the SDK drops it where the caller did not ask for any (M17)."""
        await self._ctx.session.report_progress(progress, total, message)

    @property
    def log_level(self) -> types.LoggingLevel | None:
        """What a server of revision 2026-07-28 is to say at least, None for nothing."""
        if self._modern:
            level: types.LoggingLevel | None = self._meta().get(types.LOG_LEVEL_META_KEY)
            return level
        return self._level or "info"

    def _heard(self) -> frozenset[types.LoggingLevel]:
        if self._modern:
            return allowed_log_levels(self._ctx.protocol_version, self._meta())
        return frozenset(LEVELS[LEVELS.index(self._level or LEVELS[0]) :])

    def _meta(self) -> dict[str, Any]:
        return (self._ctx.params or {}).get("_meta") or {}

    async def _ask_with_result(self, request: types.ServerRequest) -> Answer:
        if isinstance(request, types.PingRequest):
            return types.ErrorData(code=types.INVALID_REQUEST, message="This client takes no requests.")
        key = uuid4().hex
        self._answers[key] = asyncio.get_running_loop().create_future()
        self.questions[key] = request
        self.asked.set()
        return await self._answers[key]


def unable(capabilities: types.ClientCapabilities, request: types.ServerRequest) -> str:
    """Why a client cannot answer this, empty where it can: servers may ask for what was declared, and no more."""
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
