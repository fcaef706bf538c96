"""Calls are checked twice before any server sees them: may this tool be called now, and do the arguments fit?"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import jsonschema
import jsonschema.validators
from referencing.exceptions import Unresolvable
from referencing.jsonschema import EMPTY_REGISTRY

from pegboard.errors import ArgumentsInvalid, ToolNotAvailable
from pegboard.model import Call, Decision, JsonObject, Tool, ToolId

LOGGER = logging.getLogger(__name__)

Gate = Literal["active", "reachable"]

SUGGESTIONS = 20
PROBLEMS = 8

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
    """The tool a call means, if the turn allows it: the hallucination gate (seed 000 algorithm 1, line 8).

    A call by the name that the decision gave it, by ``server/name``, or by a name that one allowed tool has. Raises
    ToolNotAvailable otherwise.
    """
    allowed = decision.active if gate == "active" else tuple(sorted(decision.reachable))
    named = [tool for tool in allowed if call.name == decision.names.get(tool)]
    matches = named or [tool for tool in allowed if call.name in (tool.name, str(tool))]
    if len(matches) != 1:
        raise ToolNotAvailable(call.name, _names(matches or allowed, decision), remedy=_remedy(matches))
    return matches[0]


def check_arguments(tool: Tool, arguments: JsonObject) -> None:
    """Raises ArgumentsInvalid where the arguments do not fit the tool's input schema.

    A schema that is itself broken cannot judge: the call passes and the server decides (relevance of a check
    fails open). References are resolved within the schema only, never over a network.
    """
    schema = tool.input_schema
    if schema and (problems := _problems(schema, arguments, f"The input schema of {tool.id}")):
        raise ArgumentsInvalid(tool.name, problems, schema)


def keeps_its_word(tool: Tool, result: JsonObject) -> bool:
    """Whether a tool's result without an error is what its output schema promises (MCP, tools, "Output Schema")."""
    schema = tool.output_schema
    if not schema:
        return True
    if "structuredContent" not in result:
        return False
    return not _problems(schema, result["structuredContent"], f"The output schema of {tool.id}")


def _problems(schema: JsonObject, value: Any, what: str) -> list[str]:
    try:
        dialect = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        validator = dialect(schema, registry=EMPTY_REGISTRY)
        return [_sentence(error) for error in _first(validator.iter_errors(value), PROBLEMS)]
    except UNUSABLE as error:
        LOGGER.warning("%s cannot be used: %s", what, type(error).__name__)
        return []


def _sentence(error: jsonschema.ValidationError) -> str:
    where = "/".join(str(step) for step in error.absolute_path)
    return f"{where}: {error.message}" if where else error.message


def _first(errors: Iterable[jsonschema.ValidationError], limit: int) -> list[jsonschema.ValidationError]:
    return [error for error, _ in zip(errors, range(limit), strict=False)]


def _names(tools: Sequence[ToolId], decision: Decision) -> list[str]:
    if decision.names:
        return [decision.name_of(tool) for tool in tools[:SUGGESTIONS]]
    shared = {tool.name for tool in tools if sum(other.name == tool.name for other in tools) > 1}
    return [str(tool) if tool.name in shared else tool.name for tool in tools[:SUGGESTIONS]]


def _remedy(matches: Sequence[ToolId]) -> str:
    if matches:
        return "Several servers have a tool of that name: call it as server/name."
    return "Call one of the available tools, or say what you need so that other tools can be found."
