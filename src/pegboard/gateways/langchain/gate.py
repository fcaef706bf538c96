"""The hallucination gate (seed 000 §5.5): which tool a call means, if it may be called now with these arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage

from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.gateways.langchain.reading import CALL_TOOL
from pegboard.gateways.langchain.rendering import Rendering
from pegboard.model import Call, ToolId


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call as the model meant it; ``wrapped`` is whether it came through the one constant tool."""

    call: Call
    wrapped: bool = False


def wanted(call: ToolCall | Mapping[str, Any], rendering: Rendering) -> Wanted:
    """The call, taken out of the one constant tool where it is in there: `native` has none, and a tool of that name is
    the agent's own."""
    arguments = call["args"]
    if call["name"] != CALL_TOOL or rendering == "native":
        return Wanted(call=Call(name=call["name"], arguments=arguments))
    inner = arguments.get("arguments")
    name = arguments.get("name")
    return Wanted(
        call=Call(name=name if isinstance(name, str) else "", arguments=inner if isinstance(inner, Mapping) else {}),
        wrapped=True,
    )


def named(call: Call, active: Mapping[str, ToolId], allowed: frozenset[ToolId]) -> ToolId:
    """The active tool of a call, if its preconditions still hold. Raises ToolNotAvailable, with what can be called.

    Which tools are active is what the model was told, even where it calls several at once; whether one may be called
    is asked anew, for the state may have changed since (rights fail closed).
    """
    available = {name: tool for name, tool in active.items() if tool in allowed}
    matches = [tool for name, tool in available.items() if call.name in (name, str(tool), tool.name)]
    exact = available.get(call.name)
    if exact is None and len(matches) != 1:
        raise ToolNotAvailable(
            call.name, list(available), remedy="Call one of the available tools, or say what you need in other words."
        )
    return exact or matches[0]


def refusal(call: ToolCall | Mapping[str, Any], error: PegboardError) -> ToolMessage:
    """What the model is told in the place of a result: the seed's structured error."""
    return ToolMessage(
        content=json.dumps(error.payload(), ensure_ascii=False),
        name=call["name"],
        tool_call_id=str(call["id"]),
        status="error",
    )
