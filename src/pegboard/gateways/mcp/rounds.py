"""Servers that ask in mid-request, before clients that can only be asked with a result (MCP 2026-07-28)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import mcp_types as types
from mcp import MCPError

from pegboard.gateways.mcp.asked_client import AskedClient, Context
from pegboard.upstreams import Inputs

Result = dict[str, Any]
Params = types.CallToolRequestParams | types.GetPromptRequestParams | types.ReadResourceRequestParams

PARKED = "pegboard:"
"""What the state of a request begins with that waits here. Sealed on its way out, as every state is."""
PARKED_SECONDS = 600.0
MOST_PARKED = 1000


@dataclass(slots=True, kw_only=True)
class Parked:
    """A request that waits for its client to come again."""

    origin: AskedClient
    task: asyncio.Task[Result]
    late: asyncio.TimerHandle | None = None


class Rounds:
    """The requests of all clients that wait for answers."""

    def __init__(self) -> None:
        self._parked: dict[str, Parked] = {}

    async def answered(self, ctx: Context, params: Params, origin: AskedClient, work: Work) -> Result:
        """The result of ``work``, which is done for ``origin``; or what it has to be asked before.

        Raises MCPError for a state that nobody waits with any more, and for answers that are none.
        """
        if "inputResponses" in (ctx.params or {}) and params.input_responses is None:
            raise MCPError(types.INVALID_PARAMS, "inputResponses has to be an object")
        if origin.takes_requests:
            with origin.answering():
                return await work()
        state = params.request_state
        if state is not None and state.startswith(PARKED):
            return await self._next(self._again(ctx, state, params.input_responses or {}))
        origin.inputs = Inputs(responses=params.input_responses, state=state)
        with origin.answering():
            return await self._next(Parked(origin=origin, task=asyncio.create_task(_begun(work))))

    def close(self) -> None:
        for key in list(self._parked):
            self._give_up(key)

    def _again(self, ctx: Context, state: str, answers: types.InputResponses) -> Parked:
        parked = self._parked.pop(state, None)
        if parked is None:
            raise MCPError(types.INVALID_PARAMS, "Nobody waits for these answers any more: begin again.")
        if parked.late is not None:
            parked.late.cancel()
        parked.origin.comes_again(ctx, answers)
        return parked

    async def _next(self, parked: Parked) -> Result:
        """Until it is done, or has something to ask."""
        asked = asyncio.ensure_future(parked.origin.asked.wait())
        try:
            await asyncio.wait({parked.task, asked}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            parked.task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({parked.task})
            raise
        finally:
            asked.cancel()
        return parked.task.result() if parked.task.done() else self._park(parked)

    def _park(self, parked: Parked) -> Result:
        while len(self._parked) >= MOST_PARKED:
            self._give_up(next(iter(self._parked)))
        key = f"{PARKED}{uuid4().hex}"
        self._parked[key] = parked
        parked.late = asyncio.get_running_loop().call_later(PARKED_SECONDS, self._give_up, key)
        questions = {
            name: each.model_dump(by_alias=True, mode="json", exclude_none=True)
            for name, each in parked.origin.questions.items()
        }
        return {"resultType": "input_required", "inputRequests": questions, "requestState": key}

    def _give_up(self, key: str) -> None:
        parked = self._parked.pop(key, None)
        if parked is not None:
            if parked.late is not None:
                parked.late.cancel()
            parked.task.cancel()


Work = Callable[[], Awaitable[Result]]


async def _begun(work: Work) -> Result:
    return await work()
