"""The path of a tool call.

rights and name ─► arguments ─► audit ─► rate and charge ─► server ─► record ─► the server's result, or its shape
  CallerView        _check    CallAudit   RateLimiter,       Fleet   AfterAnswer  CallResults
                                          CallCharges
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import mcp_types as types
from mcp import MCPError

from pegboard.call_charges import FREE, CallCharges, cost_of
from pegboard.caller_limits import RateLimiter
from pegboard.errors import ArgumentsInvalid, PegboardError, UpstreamError
from pegboard.events import CallFinished, CallRejected
from pegboard.gateways.mcp.gateway import meta_definitions, session_changes
from pegboard.gateways.mcp.gateway.after_answer import AfterAnswer
from pegboard.gateways.mcp.gateway.call_audit import AttemptedCall, CallAudit, session_hash
from pegboard.gateways.mcp.gateway.call_results import RESULTS_META, CallResults
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.gateways.mcp.gateway.caller_view import CallerView
from pegboard.gateways.mcp.gateway.fleet_protocol import Servers
from pegboard.gateways.mcp.gateway.likely_tools import LikelyTools
from pegboard.gateways.mcp.tasks.server_tasks import ServerTasks
from pegboard.gateways.mcp.tasks.task_results import created_task
from pegboard.gateways.mcp.trust.content import Contents
from pegboard.model import JsonObject, Outcome, ServerName, Tool, ToolId
from pegboard.protocols import Clock, EventSink
from pegboard.routing import check_arguments, matches_output_schema
from pegboard.routing.economics.tool_prices import stated_usd
from pegboard.routing.habit_learner import HabitLearner
from pegboard.spend_limits import NanoUsd

Result = dict[str, Any]
Fault = Literal["server", "caller", "tool"]
CALLERS_FAULT = (types.INVALID_PARAMS, types.URL_ELICITATION_REQUIRED)
"""Protocol errors that do not count against the server: wrong arguments, and consent that the user has yet to give."""
MOST_SESSIONS = 10_000
MOST_TOOLS = 100
"""Per session: tools whose last call can still be judged, the most recent ones."""


class ToolCalls:
    """Resolves, checks, charges, sends and records calls. Results of servers are relayed untouched (M7), unless
    the settings or the client want them shaped."""

    def __init__(
        self,
        view: CallerView,
        fleet: Servers,
        charges: CallCharges,
        likely: LikelyTools,
        *,
        events: EventSink,
        clock: Clock,
        observe: Callable[[Outcome], None],
        contents: Contents,
        tasks: ServerTasks,
        later: AfterAnswer,
        audit: CallAudit,
        rates: RateLimiter,
        results: CallResults,
        learner: HabitLearner | None = None,
    ) -> None:
        self._contents = contents
        self._tasks = tasks
        self._later = later
        self._view = view
        self._audit = audit
        self._rates = rates
        self._results = results
        self._fleet = fleet
        self._book = view.book
        self._charges = charges
        self._likely = likely
        self._events = events
        self._clock = clock
        self._observe = observe
        self._learner = learner
        self._feedback = PendingFeedback()

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        context: CallContext,
        *,
        finder: str = meta_definitions.SEARCH,
        listed: bool = True,
    ) -> Result:
        """The server's result for exactly these arguments. Raises MCPError as the server does, and PegboardError.

        The arguments of a tool that its client was not listed are checked: always with ``listed`` false, when a
        meta-tool makes the call. ``finder`` is the meta-tool that an error names as the remedy.
        """
        view, caller = self._view, context.caller
        session, tool = await view.resolve(name, caller, finder)
        if not (listed and view.is_listed(tool.id, caller, session)):
            await self._check(tool, arguments)
        result = await self._sent(tool, view.filled_in(tool.id, arguments), context, arguments)
        if view.exposure(caller, session) == "dynamic":
            self._likely.called(tool.id, arguments, caller)
        if _is_task(result):
            return self._tasks.created(tool.id, result, caller)
        await self._remember(tool.id, result, caller)
        if self._results.is_on or caller.results or RESULTS_META in (context.meta or ()):
            return await self._results.shaped(tool, arguments, result, context, listed=listed)
        return result

    async def _check(self, tool: Tool, arguments: JsonObject) -> None:
        """Raises ArgumentsInvalid, and records it as the caller's failure: the server never sees such a call."""
        try:
            await check_arguments(tool, arguments)
        except ArgumentsInvalid:
            self._observe(Outcome(tool=tool.id, success=False, latency_ms=0, failure="caller"))
            raise

    async def _sent(self, tool: Tool, arguments: JsonObject, context: CallContext, asked: JsonObject) -> Result:
        """The server's result for exactly these arguments, of which the client ``asked`` those that are no presets."""
        if self._audit.is_on:
            self._audit.check()
            return await self._audited(tool, arguments, context, asked)
        return await self._admitted(tool, arguments, context)

    async def _audited(self, tool: Tool, arguments: JsonObject, context: CallContext, asked: JsonObject) -> Result:
        attempt = AttemptedCall(
            name=tool.name, arguments=asked, context=context, called=tool, started=self._clock.monotonic()
        )
        price = self._price(tool)
        try:
            result = await self._admitted(tool, arguments, context)
        except PegboardError:  # the gateway answers with it, and hands it to `rejected`
            raise
        except BaseException as error:
            by_caller = isinstance(error, Exception) and fault_of(error) == "caller"
            self._audit.failed(attempt, error, price, by_caller=by_caller)
            raise
        self._audit.answered(attempt, result, price)
        return result

    async def _admitted(self, tool: Tool, arguments: JsonObject, context: CallContext) -> Result:
        """Within the rates and the spend limits of the caller, if there are any."""
        caller = context.caller
        if self._rates.limits or caller.holder is not None:
            await self._rates.admit_call(caller.limited, tool.id)
        if not self._charges.priced:
            return await self._observed(tool, arguments, context)
        stated = stated_usd(tool, "price_usd")
        async with self._charges.charged(caller.session, tool.id, stated=stated, caller=caller.limited):
            return await self._observed(tool, arguments, context)

    def _price(self, tool: Tool) -> NanoUsd:
        return self._charges.price(tool.id, stated_usd(tool, "price_usd"))

    async def _remember(self, tool: ToolId, result: Result, caller: Caller) -> None:
        """Scan the result, and note the answer in the session."""
        self._contents.answered(ServerName(tool.server), tool.name, result)
        if caller.session is None:
            return
        if not result.get("isError", False) and result.get("resultType") != "input_required":
            await self._book.update(caller.session, session_changes.answered(tool.name))
        self._book.touch(caller.session, session_changes.use(tool))

    def searched(self, caller: Caller, decision: str) -> None:
        """The next calls of this caller follow the decision of a search."""
        self._audit.searched(caller, decision)

    def rejected(self, attempt: AttemptedCall, error: PegboardError, *, shown: str | None = None) -> Result:
        """The result for a call that no server answered: an error with ``isError`` (M8). ``shown`` is its name in the
        event, if that is not the attempt's."""
        self._events.emit(CallRejected(at=self._clock.time(), tool=shown or attempt.name, reason=error.code))
        called = attempt.called
        price = self._price(called) if called is not None else FREE
        self._audit.refused(attempt, error, cost_of(error, price))
        return error.to_mcp()

    def judge(self, session: str | None, tool: ToolId, *, useful: bool) -> bool:
        """Record the agent's verdict on its last successful call of a tool. Returns whether there was such a call."""
        if not self._feedback.judged(session, tool):
            return False
        if not useful:
            self._observe(Outcome(tool=tool, success=False, latency_ms=0, failure="verdict"))
        return True

    def forget(self, session: str) -> None:
        self._feedback.forget(session)

    async def _observed(self, called: Tool, arguments: JsonObject, context: CallContext) -> Result:
        """Sends the call and records its outcome. Cancelled calls and calls that were not admitted are not recorded."""
        tool, started = called.id, self._clock.monotonic()
        try:
            result = await self._fleet.call(tool, arguments, meta=context.meta, progress=context.progress)
        except Exception as error:
            if isinstance(error, UpstreamError) or not isinstance(error, PegboardError):
                self._note(context, tool, started, fault_of(error))
            raise
        self._note(context, tool, started, "tool" if await _failed(called, result) else None)
        return result

    def _note(self, context: CallContext, tool: ToolId, started: float, fault: Fault | None) -> None:
        """A failure counts before the answer, as the next call may come at once; a success, a moment after it."""
        latency = (self._clock.monotonic() - started) * 1000
        outcome = Outcome(tool=tool, success=fault is None, latency_ms=latency, failure=fault)
        self._feedback.called(context.caller.session, tool, success=outcome.success)
        self._later(partial(self._record, outcome, self._clock.time(), context.caller))
        if not outcome.success:
            self._later.flush()

    def _record(self, outcome: Outcome, at: float, caller: Caller) -> None:
        tool, success = outcome.tool, outcome.success
        self._events.emit(
            CallFinished(
                at=at,
                tool=str(tool),
                server=tool.server,
                success=success,
                latency_ms=outcome.latency_ms,
                key=caller.name,
                conversation=session_hash(caller.session),
            )
        )
        self._observe(outcome)
        if success and self._learner is not None:
            self._learner.called_after_search(caller.conversation, tool)


class PendingFeedback:
    """The tools of each session whose last call succeeded and has not been judged; kept in memory, by the process that
    made the call."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, OrderedDict[ToolId, None]] = OrderedDict()

    def called(self, session: str | None, tool: ToolId, *, success: bool) -> None:
        """Calls without a session are not tracked: a later verdict could not be matched to them."""
        if session is None:
            return
        tools = self._of.setdefault(session, OrderedDict())
        self._of.move_to_end(session)
        tools.pop(tool, None)
        if success:
            tools[tool] = None
        while len(tools) > MOST_TOOLS:
            tools.popitem(last=False)
        while len(self._of) > MOST_SESSIONS:
            self._of.popitem(last=False)

    def judged(self, session: str | None, tool: ToolId) -> bool:
        """Whether there was a call to judge; it can be judged only once."""
        awaiting = self._of.get(session, OrderedDict()) if session is not None else OrderedDict[ToolId, None]()
        return tool in awaiting and awaiting.pop(tool) is None

    def forget(self, session: str) -> None:
        self._of.pop(session, None)


async def _failed(tool: Tool, result: Result) -> bool:
    """Whether the result is an error or violates the tool's output schema. The client gets it unchanged in any case."""
    if result.get("isError", False):
        return True
    if not tool.output_schema or result.get("resultType") == "input_required" or _is_task(result):
        return False
    return not await matches_output_schema(tool, result)


def _is_task(result: Result) -> bool:
    """Whether the call has become a task."""
    is_plain = "content" in result and result.get("resultType", "complete") == "complete"
    return not is_plain and created_task(result) is not None


def fault_of(error: Exception) -> Fault:
    """Who is at fault for a call without a result.

    >>> fault_of(MCPError(types.INVALID_PARAMS, "no such city"))
    'caller'
    """
    return "caller" if isinstance(error, MCPError) and error.error.code in CALLERS_FAULT else "server"
