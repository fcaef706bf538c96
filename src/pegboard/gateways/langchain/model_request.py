"""A decision as a request, in one of two renderings (Tool Attention §4.4, §5.6).

`native` puts the schemas of the active tools into ``tools``, which every provider places before everything else, so
another selection is another prompt. `text` keeps everything that was sent byte for byte: ``tools`` has one constant
tool, the summaries are in the system prompt, and schemas come with the message that made them active and stay there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from pegboard.gateways.langchain.messages import CALL_TOOL
from pegboard.model import Decision
from pegboard.wire_formats import wire_tool

Rendering = Literal["native", "text"]

NATIVE = "All tools. Only those that were given to you with this request can be called now"
TEXT = (
    f"All tools. Call one with {CALL_TOOL} after its definition was shown, while it is listed among the tools that "
    "can be called now"
)
NOW = "Tools that can be called now:"
NONE = "none"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name", "arguments"],
}


class ConstantTool(StructuredTool):
    """Its class distinguishes it from an agent's own tool of the same name."""


def is_constant(tool: object) -> bool:
    return isinstance(tool, ConstantTool)


def call_tool() -> BaseTool:
    """The constant tool of the `text` rendering. The gate runs the tool that it names; this tool itself does
    nothing."""

    def uncalled(name: str, arguments: Mapping[str, Any]) -> str:
        raise NotImplementedError(f"The gate runs {name!r} in place of this tool.")

    return ConstantTool(
        name=CALL_TOOL,
        description="Call one of the tools that can be called now, by its name, with arguments that match its schema.",
        args_schema=dict(SCHEMA),
        func=uncalled,
    )


def with_summaries(
    system: SystemMessage | None, pool: str, rendering: Rendering, search: str = ""
) -> SystemMessage | None:
    """The system prompt with the summaries appended (phase 1), and how to ``search`` for the others, if that is
    offered."""
    if not pool:
        return system
    others = f"; add others with {search}" if search else ""
    said = f"{TEXT if rendering == 'text' else NATIVE}{others}:\n{pool}"
    if system is None:
        return SystemMessage(said)
    if isinstance(system.content, str):
        return SystemMessage(f"{system.content}\n\n{said}", id=system.id)
    return SystemMessage([*system.content, {"type": "text", "text": said}], id=system.id)


def shown(decision: Decision, texts: Mapping[str, str], messages: Sequence[AnyMessage]) -> str:
    """The text to show beside the last message (phase 2); empty if all of it was shown before and still holds.

    Definitions in a text that the conversation still contains are not repeated.
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
    """The messages with their texts: directly before what a user says, after what a tool returns."""
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
    """Whether a text can be shown beside a message: a user's or a tool's message with an id."""
    return isinstance(message, HumanMessage | ToolMessage) and bool(message.id)


def _definition(decision: Decision, place: int) -> str:
    tool = decision.tools[place]
    said = wire_tool("mcp", decision.name_of(tool.id), tool.description, tool.input_schema)
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))
