"""A conversation in whatever form an agent keeps it, as a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pegboard.errors import ConfigError
from pegboard.model import Message, Part, Role, Turn
from pegboard.retrieval import as_said

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
}

Said = Turn | str | Sequence[Any]
"""A turn, what the user says, or messages as OpenAI and Anthropic have them."""


def turn_of(said: Said) -> Turn:
    """The turn. Raises ConfigError for messages that are none.

    >>> turn_of([{"role": "user", "content": [{"type": "text", "text": "the tide?"}]}]).messages[0].text
    'the tide?'
    """
    if isinstance(said, Turn):
        return said
    if isinstance(said, str):
        return Turn.ask(said)
    return as_said(Turn(messages=tuple(_message(each) for each in said)))


def _message(said: Any) -> Message:
    if isinstance(said, Message):
        return said
    fields = said.model_dump() if hasattr(said, "model_dump") else said
    role = ROLES.get(fields.get("role", "")) if isinstance(fields, Mapping) else None
    if role is None:
        raise ConfigError(
            f"A message is {type(said).__name__} without a known role.",
            remedy=f'Give {{"role": …, "content": …}} with a role of {", ".join(ROLES)}.',
        )
    parts = tuple(_parts(fields))
    only_results = bool(parts) and all(part.kind == "tool_result" for part in parts)
    return Message(role="tool" if only_results else role, parts=parts)


def _parts(fields: Mapping[str, Any]) -> Iterable[Part]:
    """Text, results of tools (Anthropic has them in messages of the user), and calls by name."""
    content = fields.get("content")
    if isinstance(content, str):
        yield Part(text=content, kind="tool_result" if fields.get("role") == "tool" else "text")
    for block in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
        block = block.model_dump() if hasattr(block, "model_dump") else block
        match block:
            case {"type": "tool_result", **rest}:
                yield Part(kind="tool_result", text=_text(rest.get("content")))
            case {"type": "tool_use", "name": str(name)}:
                yield Part(kind="tool_call", tool=name)
            case {"text": str(text)}:
                yield Part(text=text)
    for call in fields.get("tool_calls") or ():
        yield Part(kind="tool_call", tool=cast("Mapping[str, Any]", call).get("function", {}).get("name"))


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
