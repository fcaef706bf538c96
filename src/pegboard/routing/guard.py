"""Two checks of a call before any server sees it: may the tool be called now, and do the arguments fit its schema?"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Literal

import jsonschema
from referencing.exceptions import Unresolvable

from pegboard.errors import ArgumentsInvalid, ToolNotAvailable
from pegboard.model import Call, Decision, JsonObject, Tool, ToolId
from pegboard.routing.light_schemas import is_light
from pegboard.routing.schema_checks import Unusable, schema_checks
from pegboard.routing.schema_worker import problems_of

LOGGER = logging.getLogger(__name__)

Gate = Literal["active", "reachable"]

SUGGESTIONS = 20

UNUSABLE = (
    jsonschema.SchemaError,
    jsonschema.exceptions.UnknownType,
    Unresolvable,
    re.error,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What jsonschema raises for schemas that are not valid, and for valid ones that Python cannot follow."""


def check_available(call: Call, decision: Decision, gate: Gate = "active") -> ToolId:
    """The tool that a call names, if the turn allows it: the hallucination gate (Tool Attention algorithm 1, line 8).

    The name is the one in the decision, ``server/name``, or a name that only one allowed tool has. Otherwise raises
    ToolNotAvailable.
    """
    allowed = decision.active if gate == "active" else tuple(sorted(decision.reachable))
    named = [tool for tool in allowed if call.name == decision.names.get(tool)]
    matches = named or [tool for tool in allowed if call.name in (tool.name, str(tool))]
    if len(matches) != 1:
        raise ToolNotAvailable(call.name, _names(matches or allowed, decision), remedy=_remedy(matches))
    return matches[0]


async def check_arguments(tool: Tool, arguments: JsonObject) -> None:
    """Raises ArgumentsInvalid if the arguments do not fit the tool's input schema. Does not block the event loop.

    If the schema is invalid or takes too long, the call passes and the server decides: this check fails open.
    References are resolved within the schema only, never over a network.
    """
    if schema := tool.input_schema:
        _refuse(tool, schema, await _problems(schema, arguments, f"The input schema of {tool.id}"))


def check_arguments_now(tool: Tool, arguments: JsonObject) -> None:
    """Like `check_arguments`, for synchronous code: waits for a slow check."""
    if schema := tool.input_schema:
        _refuse(tool, schema, _problems_now(schema, arguments, f"The input schema of {tool.id}"))


def check_lightly(tool: Tool, arguments: JsonObject) -> None:
    """Like `check_arguments`, within a stream that cannot wait: a check that may be slow is skipped."""
    if (schema := tool.input_schema) and is_light(schema, arguments):
        _refuse(tool, schema, _at_once(schema, arguments, f"The input schema of {tool.id}"))


async def matches_output_schema(tool: Tool, result: JsonObject) -> bool:
    """Whether a tool's successful result fits its output schema (MCP, tools, "Output Schema")."""
    schema = tool.output_schema
    if not schema:
        return True
    if "structuredContent" not in result:
        return False
    return not await _problems(schema, result["structuredContent"], f"The output schema of {tool.id}")


def _refuse(tool: Tool, schema: JsonObject, problems: Sequence[str]) -> None:
    if problems:
        raise ArgumentsInvalid(tool.name, problems, schema)


async def _problems(schema: JsonObject, value: Any, what: str) -> list[str]:
    if is_light(schema, value):
        return _at_once(schema, value, what)
    try:
        return await schema_checks().problems(schema, value)
    except Unusable as why:
        return _unusable(what, why)


def _problems_now(schema: JsonObject, value: Any, what: str) -> list[str]:
    if is_light(schema, value):
        return _at_once(schema, value, what)
    try:
        return schema_checks().problems_now(schema, value)
    except Unusable as why:
        return _unusable(what, why)


def _at_once(schema: JsonObject, value: Any, what: str) -> list[str]:
    try:
        return problems_of(schema, value)
    except UNUSABLE as error:
        return _unusable(what, type(error).__name__)


def _unusable(what: str, why: object) -> list[str]:
    LOGGER.warning("%s cannot be used: %s", what, why)
    return []


def _names(tools: Sequence[ToolId], decision: Decision) -> list[str]:
    if decision.names:
        return [decision.name_of(tool) for tool in tools[:SUGGESTIONS]]
    shared = {tool.name for tool in tools if sum(other.name == tool.name for other in tools) > 1}
    return [str(tool) if tool.name in shared else tool.name for tool in tools[:SUGGESTIONS]]


def _remedy(matches: Sequence[ToolId]) -> str:
    if matches:
        return "Several servers have a tool of that name: call it as server/name."
    return "Call one of the available tools, or describe what you need so that other tools can be found."
