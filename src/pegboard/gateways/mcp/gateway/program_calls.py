"""`run_program`: the calls of a program, each on the path of a single call of its caller.

Rights, pins, schemas, rates, prices, audit and the scanner see what they would see without a program. The results reach
the program whole, since no model reads them; what it prints is cut to its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mcp import MCPError
from mcp.shared.dispatcher import ProgressFnT

from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.call_audit import AttemptedCall, session_hash
from pegboard.gateways.mcp.gateway.call_results import RESULTS_META
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.gateways.mcp.gateway.caller_view import CallerView
from pegboard.gateways.mcp.gateway.tool_calls import ToolCalls
from pegboard.model import JsonObject, Session, Tool, ToolId
from pegboard.programs.function_names import function_names
from pegboard.programs.program_run import ProgramRun, finished, program_text
from pegboard.programs.result_values import CallFailed, value_of
from pegboard.programs.runner import ProgramRunner, words_of
from pegboard.programs.stubs import check_stub, parameters
from pegboard.protocols import Clock, EventSink
from pegboard.upstreams import ORIGIN, Inputs

Result = dict[str, Any]
PROGRAM_META = "pegboard/program"
"""The key of a result's `_meta` with the outcome, the calls and the seconds of a program."""
Attempt = Callable[[str, JsonObject, CallContext], AttemptedCall]


class ProgramCalls:
    """Runs programs for their callers."""

    def __init__(
        self,
        view: CallerView,
        calls: ToolCalls,
        runner: ProgramRunner,
        attempt: Attempt,
        *,
        events: EventSink,
        clock: Clock,
    ) -> None:
        self._view = view
        self._calls = calls
        self._runner = runner
        self._attempt = attempt
        self._events = events
        self._clock = clock

    async def run(self, arguments: JsonObject, context: CallContext) -> Result:
        """The result of `run_program`: what was printed, the last value, and what went wrong.

        Raises ToolNotAvailable where programs are switched off, ProgramsBusy, and ConfigError without a sandbox.
        """
        if self._runner.settings.mode == "off":
            raise ToolNotAvailable(meta_definitions.RUN, [], remedy="Programs are switched off here: call the tools.")
        view, caller, origin = self._view, context.caller, ORIGIN.get()
        if origin is not None and origin.inputs.state is None:
            origin.inputs = Inputs()  # answers to no question are for a tool that the client names
        await view.catalog_view.started(some=True)
        functions = await self._functions(context)
        used = words_of(arguments["program"])
        declared = {function: check_stub(function, of[1]) for function, of in functions.items() if function in used}
        whole = replace(context, caller=replace(caller, results="whole"), meta=_without_form(context), progress=None)
        calls = _Calls(functions, self._calls, self._attempt, whole, context.progress)
        return self._result(await self._runner.run(arguments["program"], declared, calls), context)

    def functions(self, caller: Caller, session: Session) -> Mapping[ToolId, str]:
        """The function of each tool, for searches; empty where no programs are offered."""
        if not self._view.programs(caller, session).offered:
            return {}
        names = self._view.names(caller)
        return {names.tool[name]: function for function, name in function_names(names.of.values()).items()}

    async def _functions(self, context: CallContext) -> dict[str, tuple[str, Tool]]:
        """The functions of the tools that the caller may use now, each with the tool's name on the wire."""
        view, caller = self._view, context.caller
        board, names = view.board, view.names(caller)
        allowed = board.allowed(view.turn("", await view.book.get(caller.session), caller))
        found = ((function, name, names.tool[name]) for function, name in function_names(names.of.values()).items())
        return {
            function: (name, board.catalog[tool])
            for function, name, tool in found
            if tool in allowed and tool in board.catalog
        }

    def _result(self, run: ProgramRun, context: CallContext) -> Result:
        counter = self._view.board.catalog.counter
        text = program_text(run, self._runner.settings.output, counter)
        tokens, caller = sum(counter.count([text])), context.caller
        event = finished(
            run, at=self._clock.time(), tokens=tokens, key=caller.name, conversation=session_hash(caller.session)
        )
        self._events.emit(event)
        told = {
            "outcome": run.outcome,
            "calls": event.calls,
            "failed": event.failed,
            "seconds": round(run.seconds, 3),
        }
        return {
            "content": [{"type": "text", "text": text}],
            "isError": run.outcome != "ok",
            "_meta": {PROGRAM_META: told},
        }


class _Calls:
    """The calls of one program, each as its caller would make it alone; the client hears of each as progress."""

    def __init__(
        self,
        functions: Mapping[str, tuple[str, Tool]],
        calls: ToolCalls,
        attempt: Attempt,
        context: CallContext,
        progress: ProgressFnT | None,
    ) -> None:
        self._functions = functions
        self._calls = calls
        self._attempt = attempt
        self._context = context
        self._progress = progress
        self._made = 0

    async def __call__(self, function: str, arguments: list[Any], named: JsonObject, line: int) -> Any:
        """Raises CallFailed with what the program should see."""
        try:
            if function not in self._functions:
                raise CallFailed("there is no such tool")
            name, tool = self._functions[function]
            return value_of(tool, await self._answered(name, bound(tool, arguments, named)))
        finally:
            self._made += 1
            if self._progress is not None:
                await self._progress(self._made, None, f"line {line}: {function}")

    async def _answered(self, name: str, arguments: JsonObject) -> Result:
        try:
            return await self._calls.call(name, arguments, self._context, listed=False)
        except PegboardError as error:
            call = {"name": name, "arguments": arguments}
            self._calls.rejected(self._attempt(meta_definitions.INVOKE, call, self._context), error)
            raise CallFailed(str(error)) from None
        except MCPError as error:
            raise CallFailed(error.error.message) from None


def bound(tool: Tool, arguments: list[Any], named: JsonObject) -> JsonObject:
    """The arguments of a call by name; those by place are in the order of the stub, as far as Python can name them.

    Raises CallFailed.
    """
    places = [each.name for each in parameters(tool.input_schema) if each.named]
    if len(arguments) > len(places):
        raise CallFailed(f"takes {len(places)} arguments, and {len(arguments)} were given")
    by_place = dict(zip(places, arguments, strict=False))
    if twice := sorted(by_place.keys() & named.keys()):
        raise CallFailed(f"got {twice[0]!r} twice")
    return by_place | dict(named)


def _without_form(context: CallContext) -> Mapping[str, Any] | None:
    """The call's `_meta` without a wish for the form of its result: it is for a program."""
    return None if context.meta is None else {key: of for key, of in context.meta.items() if key != RESULTS_META}
