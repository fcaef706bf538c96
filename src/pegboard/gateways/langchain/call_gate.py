"""The hallucination gate (Tool Attention §5.5): which tool a call means, and whether it may be called now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage

from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.gateways.langchain.messages import CALL_TOOL
from pegboard.gateways.langchain.model_request import Rendering
from pegboard.model import Call, ToolId


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A call as the model meant it; ``wrapped`` says whether it came through the constant tool."""

    call: Call
    wrapped: bool = False


def wanted(call: ToolCall | Mapping[str, Any], rendering: Rendering) -> RequestedCall:
    """The call, unwrapped if it came through the constant tool. `native` rendering has no such tool: there, a tool of
    that name is the agent's own."""
    arguments = call["args"]
    if call["name"] != CALL_TOOL or rendering == "native":
        return RequestedCall(call=Call(name=call["name"], arguments=arguments))
    inner = arguments.get("arguments")
    name = arguments.get("name")
    return RequestedCall(
        call=Call(name=name if isinstance(name, str) else "", arguments=inner if isinstance(inner, Mapping) else {}),
        wrapped=True,
    )


def named(call: Call, active: Mapping[str, ToolId], allowed: frozenset[ToolId]) -> ToolId:
    """The active tool of a call if its preconditions still hold. Raises ToolNotAvailable with the callable tools.

    The active tools are those that the model was shown, even if it makes several calls at once; whether a tool may be
    called is checked again, as the state may have changed since (rights fail closed).
    """
    available = {name: tool for name, tool in active.items() if tool in allowed}
    matches = [tool for name, tool in available.items() if call.name in (name, str(tool), tool.name)]
    exact = available.get(call.name)
    if exact is None and len(matches) != 1:
        raise ToolNotAvailable(
            call.name,
            list(available),
            remedy="Call one of the available tools, or describe what you need in other words.",
        )
    return exact or matches[0]


def refusal(call: ToolCall | Mapping[str, Any], error: PegboardError) -> ToolMessage:
    """The refusal that the model gets as a result: the paper's structured error."""
    return ToolMessage(
        content=json.dumps(error.payload(), ensure_ascii=False),
        name=call["name"],
        tool_call_id=str(call["id"]),
        status="error",
    )
