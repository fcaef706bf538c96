"""A decision as a request, in one of two ways (seed 000 §4.4, §5.6).

`native` puts the schemas of the active tools into ``tools``, which every provider places before all else, so that
another selection is another prompt. `text` keeps what was sent byte for byte: ``tools`` has one constant tool, the
summaries stand in the system prompt, and schemas come with the message that made them active and stay there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from pegboard.gateways.langchain.reading import CALL_TOOL
from pegboard.model import Decision
from pegboard.wire_formats import wire_tool

Rendering = Literal["native", "text"]

NATIVE = "Tools that there are. Only those that you were given with this request can be called now:"
TEXT = (
    f"Tools that there are. Call one with {CALL_TOOL}, once its definition was shown and while it is among those that "
    "can be called now:"
)
NOW = "Tools that can be called now:"
NONE = "none"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name", "arguments"],
}


class ConstantTool(StructuredTool):
    """Told by its class from an agent's own tool of the same name."""


def is_constant(tool: object) -> bool:
    return isinstance(tool, ConstantTool)


def call_tool() -> BaseTool:
    """The one constant tool of `text`. The gate calls what it names; by itself it does nothing."""

    def uncalled(name: str, arguments: Mapping[str, Any]) -> str:
        raise NotImplementedError(f"The gate calls {name!r} in place of this.")

    return ConstantTool(
        name=CALL_TOOL,
        description="Call a tool that can be called now, by its name, with arguments that fit its schema.",
        args_schema=dict(SCHEMA),
        func=uncalled,
    )


def with_summaries(system: SystemMessage | None, pool: str, rendering: Rendering) -> SystemMessage | None:
    """The system prompt with the summaries at its end (phase 1)."""
    if not pool:
        return system
    said = f"{TEXT if rendering == 'text' else NATIVE}\n{pool}"
    if system is None:
        return SystemMessage(said)
    if isinstance(system.content, str):
        return SystemMessage(f"{system.content}\n\n{said}", id=system.id)
    return SystemMessage([*system.content, {"type": "text", "text": said}], id=system.id)


def shown(decision: Decision, texts: Mapping[str, str], messages: Sequence[AnyMessage]) -> str:
    """What is to be shown beside the last message (phase 2); empty where all of it was shown before and still holds.

    Definitions that stand in a text that the conversation still has are not shown again.
    """
    kept = [texts[message.id] for message in messages if message.id and message.id in texts]
    before = {line for text in kept for line in text.splitlines()}
    names = [decision.name_of(tool.id) for tool in decision.tools]
    now = f"{NOW} {', '.join(names) or NONE}"
    lines = [_definition(decision, place) for place in range(len(names))]
    new = [line for line in lines if line not in before]
    latest = kept[-1].splitlines()[0] if kept else ""
    return "" if latest == now and not new else "\n".join([now, *new])


def with_texts(messages: Sequence[AnyMessage], texts: Mapping[str, str]) -> list[AnyMessage]:
    """The messages, each with what was shown beside it: right before what a user says, after what a tool says."""
    return [
        _with_text(message, texts[message.id]) if message.id and message.id in texts else message
        for message in messages
    ]


def _with_text(message: AnyMessage, text: str) -> AnyMessage:
    first = not isinstance(message, ToolMessage)
    if isinstance(message.content, str):
        both = (text, message.content) if first else (message.content, text)
        return message.model_copy(update={"content": "\n\n".join(both)})
    block = {"type": "text", "text": text}
    blocks = [block, *message.content] if first else [*message.content, block]
    return message.model_copy(update={"content": blocks})


def can_carry(message: AnyMessage) -> bool:
    """Whether a text can be shown beside a message: a user's or a tool's, that can be told from others."""
    return isinstance(message, HumanMessage | ToolMessage) and bool(message.id)


def _definition(decision: Decision, place: int) -> str:
    tool = decision.tools[place]
    said = wire_tool("mcp", decision.name_of(tool.id), tool.description, tool.input_schema)
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))
