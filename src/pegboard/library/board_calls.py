"""A checked call: paid for within the spend limits, executed by its function or server, and recorded."""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pegboard.errors import NotApproved, SpendLimitReached, StoreError
from pegboard.library.execution import is_control_flow, outcome, result_of_error, result_of_server, result_of_value
from pegboard.library.named_arguments import Function
from pegboard.library.runtime import BoardRuntime
from pegboard.library.turns import answered
from pegboard.model import JsonObject, Outcome, Result, Session, Tool, ToolId
from pegboard.routing.economics.tool_prices import stated_usd

LOGGER = logging.getLogger(__name__)
UNNAMED = Session().id


@dataclass(slots=True)
class CallEnd:
    """How a call ended; its failure says whether it has to be paid for."""

    failure: Exception | None = None


async def called(
    shared: BoardRuntime,
    function: Function | None,
    tool: Tool,
    arguments: JsonObject,
    session: Session,
    admit: Callable[[ToolId], None],
) -> Result:
    """The result of a call. Whatever a tool raises becomes an error result, except what pauses a graph of LangGraph,
    and so does a spend limit that is reached or a definition that ``admit`` raises NotApproved for: the tool is not
    called then."""
    try:
        admit(tool.id)
        async with _charged(shared, session, tool) as end:
            result, end.failure = await _executed(shared, function, tool.id, arguments, session)
            return result
    except (NotApproved, SpendLimitReached, StoreError) as error:
        return result_of_error(tool.id, error)


async def _executed(
    shared: BoardRuntime, function: Function | None, tool: ToolId, arguments: JsonObject, session: Session
) -> tuple[Result, Exception | None]:
    started = time.monotonic()
    failure: Exception | None = None
    try:
        if function is None:
            result = result_of_server(tool, await shared.wait(shared.call(tool, arguments)))
        else:
            result = result_of_value(tool, await _value(shared, function, arguments))
    except Exception as error:  # the model is told whatever a tool raises
        if is_control_flow(error):
            raise
        failure, result = error, result_of_error(tool, error)
    except SystemExit as error:  # it would end the board's loop, and nobody would get an answer
        failure = RuntimeError(f"The tool called sys.exit({error.code!r}).")
        result = result_of_error(tool, failure)
    seen = outcome(tool, time.monotonic() - started, failed=result.is_error, error=failure)
    try:
        await _recorded(shared, session, seen)
    except Exception as error:  # noqa: BLE001 - the tool has run: after an error the model would call it again
        LOGGER.warning("A call of %s was made and could not be recorded: %s", tool, error)
    return result, failure


async def _value(shared: BoardRuntime, function: Function, arguments: JsonObject) -> Any:
    """What a function returns; of a generator all that it yields, run where a function of its kind runs."""
    value = await shared.in_thread(_returned, function, arguments)
    if inspect.isawaitable(value):
        value = await value
    if inspect.isasyncgen(value):
        return [each async for each in value]
    return await shared.in_thread(list, value) if inspect.isgenerator(value) else value


def _returned(function: Function, arguments: JsonObject) -> Any:
    """As Python has it for generators, StopIteration is a RuntimeError: no future can hold it."""
    try:
        return function(arguments)
    except StopIteration as error:
        raise RuntimeError("The tool raised StopIteration.") from error


async def _recorded(shared: BoardRuntime, session: Session, seen: Outcome) -> None:
    """Count a call, and remember that its tool answered."""
    parts = await shared.wait(shared.opened())
    shared.observe(seen)
    if seen.success:
        await shared.wait(answered(parts.sessions, session, seen.tool))


@asynccontextmanager
async def _charged(shared: BoardRuntime, session: Session, tool: Tool) -> AsyncIterator[CallEnd]:
    """Wraps a call that runs on the caller's loop; the account is kept on the board's. Raises SpendLimitReached, and
    StoreError if a limit cannot be checked."""
    charges = await shared.wait(shared.charged())
    end, stated = CallEnd(), stated_usd(tool, "price_usd")
    if not charges.price(tool.id, stated):
        yield end
        return
    held = AsyncExitStack()
    account = None if session.id == UNNAMED else session.id
    await shared.wait(_entered(held, charges.charged(account, tool.id, stated=stated)))
    try:
        yield end
    finally:
        await shared.wait(_left(held, end.failure))


async def _entered(held: AsyncExitStack, charge: AbstractAsyncContextManager[None]) -> None:
    await held.enter_async_context(charge)


async def _left(held: AsyncExitStack, failure: Exception | None) -> None:
    """Settle the charge; the failure itself is the result's."""
    try:
        if failure is None:
            await held.aclose()
        else:
            await held.__aexit__(type(failure), failure, failure.__traceback__)
    except Exception as error:  # noqa: BLE001 - the tool has run, and the charge is kept and settled later
        if error is not failure:
            LOGGER.warning("A charge could not be settled, and is tried again: %s", error)
