"""LangChain's messages as a turn, and an agent's state as the facts that preconditions look at."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from pegboard.errors import ToolNotAvailable
from pegboard.model import AgentState, Message, Part, Role, Turn
from pegboard.retrieval import as_said

CALL_TOOL = "call_tool"


def turn_of(messages: Sequence[AnyMessage], state: AgentState) -> Turn:
    return as_said(Turn(messages=tuple(_message(message) for message in messages), state=state))


def facts_of(state: Mapping[str, Any]) -> AgentState:
    """``auth`` and ``milestones`` of the state, where it has them, and the tools that have answered in its messages."""
    messages: Sequence[AnyMessage] = state.get("messages") or ()
    return AgentState(
        auth=frozenset(state.get("auth") or ()),
        milestones=frozenset(state.get("milestones") or ()),
        tool_outputs=frozenset(_answered(messages)),
    )


def called_name(call: Mapping[str, Any]) -> str:
    """The name of the tool that a call means, which for the one constant tool stands in its arguments."""
    name = call["name"]
    return str(call["args"].get("name", "")) if name == CALL_TOOL else str(name)


def refused_names(messages: Sequence[AnyMessage]) -> list[str]:
    """The names that calls were refused for since the user last spoke, in order."""
    found: list[str] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            found = []
        elif isinstance(message, ToolMessage) and message.status == "error":
            found += _refused(message)
    return found


def _refused(message: ToolMessage) -> list[str]:
    try:
        said = json.loads(message.content) if isinstance(message.content, str) else None
    except ValueError:
        return []
    refused = isinstance(said, dict) and said.get("error") == ToolNotAvailable.code
    return [str(said.get("tool"))] if refused and isinstance(said, dict) else []


def _answered(messages: Sequence[AnyMessage]) -> Iterator[str]:
    names = {
        call["id"]: called_name(call)
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    for message in messages:
        if isinstance(message, ToolMessage) and message.status == "success":
            yield names.get(message.tool_call_id) or message.name or ""


def _message(message: AnyMessage) -> Message:
    role: Role = "user"
    parts = [Part(text=message.text)] if message.text else []
    match message:
        case AIMessage():
            role = "assistant"
            parts += [Part(kind="tool_call", tool=called_name(call)) for call in message.tool_calls]
        case ToolMessage():
            role = "tool"
            parts = [Part(kind="tool_result", text=message.text)]
        case SystemMessage():
            role = "system"
    return Message(role=role, parts=tuple(parts))
