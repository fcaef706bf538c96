"""What a server asks and says in the course of its work goes to the client that it works for, and to no other (M21)."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from pydantic import TypeAdapter

from pegboard.upstreams.origin import ORIGIN, Inputs, Origin
from pegboard.upstreams.present import Present

LOGGER = logging.getLogger(__name__)

ANSWER_SECONDS = 600.0
"""For somebody to answer a question; the server's own time stands still meanwhile."""
LAST_WORDS = 2.0
"""Seconds that a client has to take what was said before its answer."""
MOST_ROUNDS = 20
QUESTIONS: TypeAdapter[dict[str, types.InputRequest]] = TypeAdapter(dict[str, types.InputRequest])

Result = dict[str, Any]
Answer = types.InputResponse | types.ErrorData
MULTI_ROUND = types.CallToolRequest | types.GetPromptRequest | types.ReadResourceRequest


@dataclass(slots=True, kw_only=True, eq=False)
class Work:
    """One request under way, with the time it has."""

    origin: Origin | None
    seconds: float
    limit: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _speaking: int = 0
    _silent: asyncio.Event = field(default_factory=asyncio.Event)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Somebody else's time: a question is being answered."""
        self.limit.deadline = anyio.current_time() + ANSWER_SECONDS
        try:
            yield
        finally:
            self.limit.deadline = anyio.current_time() + self.seconds

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Something is on its way to the client."""
        self._speaking += 1
        self._silent.clear()
        try:
            yield
        finally:
            self._speaking -= 1
            if not self._speaking:
                self._silent.set()

    async def said(self) -> None:
        """Everything that came before the answer has been passed on: what was received before has its turn first."""
        await asyncio.sleep(0)
        if self._speaking:
            with anyio.move_on_after(LAST_WORDS):
                await self._silent.wait()

    def reporting(self, tell: ProgressFnT | None) -> ProgressFnT | None:
        if tell is None:
            return None

        async def report(progress: float, total: float | None, message: str | None) -> None:
            with self.speaking():
                await tell(progress, total, message)

        return report


class Asked:
    """Of one connection."""

    def __init__(self, server: str, present: Present | None = None) -> None:
        self._server = server
        self._present = present or Present()
        self._under_way: list[Work] = []

    @contextmanager
    def working(self, seconds: float) -> Iterator[Work]:
        """Within it a request is under way, for at most ``seconds`` of the server's own time."""
        work = Work(origin=ORIGIN.get(), seconds=seconds)
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
        """A server may ask as soon as it is connected, when nobody has a request under way."""
        if not self._under_way:
            return await self._present.roots()
        return await self._ask(types.ListRootsRequest())

    async def on_message(self, message: object) -> None:
        if isinstance(message, types.LoggingMessageNotification | types.ElicitCompleteNotification):
            work = self._work()
            if work is None or work.origin is None:
                LOGGER.debug("Server %s said something, and to whom is not known", self._server)
                return
            with work.speaking():
                await work.origin.tell(message)

    async def _ask(self, request: types.ServerRequest) -> Answer:
        work = self._work()
        if work is None or work.origin is None:
            LOGGER.warning(
                "Server %s asked %s, and whom is not known: with perClient each client has a connection of its own",
                self._server,
                request.method,
            )
            return types.ErrorData(
                code=types.INVALID_REQUEST,
                message="Several clients wait for this server, and which of them to ask is not known. Call again, or "
                "have whoever runs the gateway set perClient for this server.",
            )
        with work.waiting():
            return await work.origin.ask(request)

    def _work(self) -> Work | None:
        """What this belongs to: the request whose stream it came on, or those of the only client there is."""
        origin = ORIGIN.get()
        if origin is not None:
            return next((work for work in self._under_way if work.origin is origin), None)
        clients = {work.origin.client if work.origin else "" for work in self._under_way}
        return self._under_way[-1] if len(clients) == 1 else None


async def in_rounds(request: types.ClientRequest, send: Callable[[], Awaitable[Result]]) -> Result:
    """The result of ``send``, with the client's inputs in the request.

    What a server of revision 2026-07-28 asks with a result, a client of the handshake era is asked at once. Raises
    MCPError where it cannot answer.
    """
    origin = ORIGIN.get()
    if origin is None or not isinstance(request, MULTI_ROUND):
        return await send()
    for _ in range(MOST_ROUNDS):
        request.params.input_responses = origin.inputs.responses
        request.params.request_state = origin.inputs.state
        result = await send()
        if result.get("resultType") != "input_required" or not origin.takes_requests:
            return result
        questions = QUESTIONS.validate_python(result.get("inputRequests") or {}, by_name=False)
        answers = {key: _given(await origin.ask(question)) for key, question in questions.items()}
        origin.inputs = Inputs(responses=answers, state=result.get("requestState"))
    raise MCPError(types.INTERNAL_ERROR, f"The server asked {MOST_ROUNDS} times and did not answer.")


def _given(answer: Answer) -> types.InputResponse:
    if isinstance(answer, types.ErrorData):
        raise MCPError.from_error_data(answer)
    return answer
