"""Calls under the exact names of their tools, as approvals, limits and the tool node look at them; and as the model
writes them.

The model may call a tool through the constant tool, with its server's name, or under a name that keeps two tools apart.
The state has every call that means an active tool under its exact name; the model's next request has it as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage

from pegboard.gateways.langchain.messages import CALL_TOOL
from pegboard.gateways.langchain.model_request import Rendering
from pegboard.library.given_tools import AGENT
from pegboard.model import ToolId

NOTE = "pegboard_written"
"""Where a message notes which calls came through the constant tool, and which names are others for the model."""


def exact_names(active: Mapping[str, ToolId]) -> dict[str, ToolId]:
    """The active tools by exact names: the agent's own by those that the agent gives them, others by the model's."""
    return {
        tool.name if tool.server == AGENT and tool.name not in active else name: tool for name, tool in active.items()
    }


def asked_name(call: Mapping[str, Any], rendering: Rendering) -> str:
    """The name of the tool that a call asks for. `native` rendering has no constant tool: there, a tool of that name is
    the agent's own."""
    inner = call["args"].get("name")
    through_one = rendering == "text" and call["name"] == CALL_TOOL and isinstance(inner, str)
    return str(inner if through_one else call["name"])


def exact(message: AIMessage, active: Mapping[str, ToolId], rendering: Rendering) -> AIMessage:
    """The message with its calls of active tools under their exact names, and a note of how the model writes them."""
    names = {tool: name for name, tool in exact_names(active).items()}
    calls: list[ToolCall] = []
    wrapped: list[str | None] = []
    for call in message.tool_calls:
        tool = _meant(asked_name(call, rendering), active)
        if tool is None:
            calls.append(call)
        elif rendering == "text" and call["name"] == CALL_TOOL:
            inner = call["args"].get("arguments")
            arguments = dict(inner) if isinstance(inner, Mapping) else {}
            calls.append(ToolCall(name=names[tool], args=arguments, id=call["id"], type="tool_call"))
            wrapped.append(call["id"])
        else:
            calls.append({**call, "name": names[tool]})
    if calls == message.tool_calls:
        return message
    others = {names[tool]: name for name, tool in active.items() if names[tool] != name}
    note = {"wrapped": wrapped, "names": others}
    return message.model_copy(
        update={"tool_calls": calls, "additional_kwargs": {**message.additional_kwargs, NOTE: note}}
    )


def as_written(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages with calls, and the names of their answers, as the model writes them: always the same bytes."""
    written: dict[tuple[str | None, str | None], str] = {}
    said: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, AIMessage) and NOTE in message.additional_kwargs:
            before, message = message, _as_written(message)
            pairs = zip(before.tool_calls, message.tool_calls, strict=True)
            written |= {(call["id"], call["name"]): other["name"] for call, other in pairs}
        elif isinstance(message, ToolMessage) and (name := written.get((message.tool_call_id, message.name))):
            message = message.model_copy(update={"name": name})
        said.append(message)
    return said


def _as_written(message: AIMessage) -> AIMessage:
    others = dict(message.additional_kwargs)
    note: Mapping[str, Any] = others.pop(NOTE)
    calls = [{**call, "name": note["names"].get(call["name"], call["name"])} for call in message.tool_calls]
    for call in calls:
        if call["id"] in note["wrapped"]:
            call |= {"name": CALL_TOOL, "args": {"name": call["name"], "arguments": call["args"]}}
    return message.model_copy(update={"tool_calls": calls, "additional_kwargs": others})


def _meant(name: str, active: Mapping[str, ToolId]) -> ToolId | None:
    """The active tool that a model means by this name, which may have its server before it."""
    exactly = active.get(name) or exact_names(active).get(name)
    matches = [tool for tool in active.values() if name in (str(tool), tool.name)]
    return exactly or (matches[0] if len(matches) == 1 else None)
