"""The hallucination gate (Tool Attention §5.5): which tool a call means, and whether it may be called now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage

from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.gateways.langchain.exact_calls import exact_names
from pegboard.model import Call, ToolId


def named(call: Call, active: Mapping[str, ToolId], allowed: frozenset[ToolId], asked: str) -> ToolId:
    """The active tool that a call names exactly, if its preconditions still hold. Raises ToolNotAvailable with the
    callable tools and what the model ``asked`` for.

    The active tools are those that the model was shown, even if it makes several calls at once; whether a tool may be
    called is checked again, as the state may have changed since (rights fail closed).
    """
    tool = exact_names(active).get(call.name)
    if tool is None or tool not in allowed:
        raise ToolNotAvailable(
            asked,
            [name for name, each in active.items() if each in allowed],
            remedy="Call one of the available tools, or describe what you need in other words.",
        )
    return tool


def refusal(call: ToolCall | Mapping[str, Any], error: PegboardError) -> ToolMessage:
    """The refusal that the model gets as a result: the paper's structured error."""
    return ToolMessage(
        content=json.dumps(error.payload(), ensure_ascii=False),
        name=call["name"],
        tool_call_id=str(call["id"]),
        status="error",
    )
