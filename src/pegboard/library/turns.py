"""A conversation in whatever form an agent keeps it, as a turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.errors import ConfigError
from pegboard.model import Message, Part, Role, Turn

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""By the name of a role, or by LangChain's of a kind of message."""
SAID = ("content", "parts", "tool_calls", "function_call")
"""Where messages keep what was said."""
CALLS = frozenset({"function_call", "custom_tool_call"})
RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Items of OpenAI Responses that are no messages. What others there are, such as reasoning, says nothing of a turn."""
KNOWN = "messages of OpenAI (Chat Completions, Responses), Anthropic, Gemini (contents) or LangChain"

Said = Turn | str | Mapping[str, Any] | Sequence[Any]
"""A turn, what the user says, or messages: as OpenAI's APIs, Anthropic's and Gemini's have them, or LangChain."""


def turn_of(said: Said) -> Turn:
    """The turn. Raises ConfigError for messages in a form that is not known.

    >>> turn_of([{"role": "user", "content": [{"type": "text", "text": "the tide?"}]}]).messages[0].text
    'the tide?'
    """
    if isinstance(said, Turn):
        return said
    if isinstance(said, str):
        return Turn.ask(said)
    messages = tuple(message for each in _listed(said) for message in _messages(each))
    if said and not messages:
        raise _unreadable(said, "holds no message")
    return Turn(messages=messages)


def _listed(said: Any) -> Sequence[Any]:
    return said if isinstance(said, Sequence) else [said]


def _messages(said: Any) -> Iterator[Message]:
    if isinstance(said, Message):
        yield said
        return
    fields = _plain(said)
    if not isinstance(fields, Mapping):
        raise _unreadable(said, "is no message")
    kind = fields.get("type")
    if kind in CALLS:
        yield Message(role="assistant", parts=(Part(kind="tool_call", tool=fields.get("name")),))
    elif kind in RESULTS:
        yield Message(role="tool", parts=(Part(kind="tool_result", text=_text(fields.get("output"))),))
    elif (name := _role(fields)) is not None:
        yield from _spoken(said, name, fields)
    elif not isinstance(kind, str):
        raise _unreadable(said, "has no role")


def _role(fields: Mapping[str, Any]) -> str | None:
    """LangChain's messages have a type for a role, and Gemini's contents may have none: they are the user's."""
    kind = fields.get("type")
    return fields.get("role") or (kind if kind in ROLES else "user" if "parts" in fields else None)


def _spoken(said: Any, name: str, fields: Mapping[str, Any]) -> Iterator[Message]:
    """A message; two where functions answered in it, as what they said is not what the user did (P1)."""
    role = ROLES.get(name)
    if role is None:
        raise _unreadable(said, f"has the role {name!r}, which is none of {', '.join(ROLES)}")
    if not any(key in fields for key in SAID):
        raise _unreadable(said, f"has none of {', '.join(SAID)}")
    parts = tuple(_parts(fields, role))
    results = tuple(part for part in parts if part.kind == "tool_result")
    rest = tuple(part for part in parts if part.kind != "tool_result")
    if results:
        yield Message(role="tool", parts=results)
    if rest or not results:
        yield Message(role=role, parts=rest)


def _parts(fields: Mapping[str, Any], role: Role) -> Iterator[Part]:
    """Text, results of tools (Anthropic and Gemini have them in messages of the user), and calls by name."""
    content = fields.get("content") if fields.get("parts") is None else fields["parts"]
    if isinstance(content, str) and (content or role == "tool"):
        yield Part(text=content, kind="tool_result" if role == "tool" else "text")
    for block in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
        yield from _part(_plain(block), role)
    for call in [*(fields.get("tool_calls") or ()), *filter(None, [fields.get("function_call")])]:
        said = _plain(call)
        yield Part(kind="tool_call", tool=(said.get("function") or said).get("name"))


def _part(block: Any, role: Role) -> Iterator[Part]:
    match block:
        case str(text):
            yield Part(text=text)
        case {"type": "tool_result", **rest}:
            yield Part(kind="tool_result", text=_text(rest.get("content")))
        case {"type": "tool_use" | "tool_call", "name": str(name)}:
            yield Part(kind="tool_call", tool=name)
        case {"functionCall": {"name": str(name)}} | {"function_call": {"name": str(name)}}:
            yield Part(kind="tool_call", tool=name)
        case {"functionResponse": Mapping() as answer} | {"function_response": Mapping() as answer}:
            yield Part(kind="tool_result", text=_text(answer.get("response")), tool=answer.get("name"))
        case {"text": str(text)} if not block.get("thought"):
            yield Part(text=text, kind="tool_result" if role == "tool" else "text")


def _plain(value: Any) -> Any:
    """What an SDK's object says of itself."""
    return value.model_dump() if hasattr(value, "model_dump") else value


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def _unreadable(said: Any, why: str) -> ConfigError:
    return ConfigError(
        f"What was said cannot be read: {type(said).__name__} {why}.", remedy=f"Give a text, or {KNOWN}."
    )
