"""A conversation, in any form that agents keep it in, as a turn; and what it remembers between turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.errors import ConfigError, SessionConflict
from pegboard.model import Message, Part, Role, Session, ToolId, Turn
from pegboard.protocols import Sessions
from pegboard.retrieval import mark_notes

UNNAMED = Session().id
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
"""Roles by name, including LangChain's message types."""
SAID = ("content", "parts", "tool_calls", "function_call")
"""The keys of a message's content."""
CALLS = frozenset({"function_call", "custom_tool_call"})
RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Items of OpenAI Responses that are not messages. Other items, such as reasoning, do not affect a turn."""
KNOWN = "messages of OpenAI (Chat Completions, Responses), Anthropic, Gemini (contents) or LangChain"
Said = Turn | str | Mapping[str, Any] | Sequence[Any]
"""A turn, the user's text, or messages in the form of OpenAI, Anthropic, Gemini or LangChain."""


def turn_of(said: Said) -> Turn:
    """The turn. Raises ConfigError for messages in an unknown form.

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
    return mark_notes(Turn(messages=messages))


def _listed(said: Any) -> Sequence[Any]:
    return said if isinstance(said, Sequence) else [said]


def _messages(said: Any) -> Iterator[Message]:
    if isinstance(said, Message):
        yield said
        return
    fields = _plain(said)
    if not isinstance(fields, Mapping):
        raise _unreadable(said, "is not a message")
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
    """LangChain's messages have a type in place of a role; Gemini's contents may have no role, which means the user."""
    kind = fields.get("type")
    return fields.get("role") or (kind if kind in ROLES else "user" if "parts" in fields else None)


def _spoken(said: Any, name: str, fields: Mapping[str, Any]) -> Iterator[Message]:
    """A message, split in two if it holds tool results: results are not what the user said (P1)."""
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
    """Text, tool results (Anthropic and Gemini put them into user messages), and calls by name."""
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
    """The fields of an SDK object."""
    return value.model_dump() if hasattr(value, "model_dump") else value


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def _unreadable(said: Any, why: str) -> ConfigError:
    return ConfigError(f"The input cannot be read: {type(said).__name__} {why}.", remedy=f"Give a text, or {KNOWN}.")


async def remembered(sessions: Sessions, turn: Turn, name: str) -> Turn:
    """The turn within the conversation ``name``; tools that answered in it are added to the facts of its state."""
    session = await sessions.load(name) or Session(id=name)
    state = replace(turn.state, tool_outputs=turn.state.tool_outputs | session.answered)
    return replace(turn, session=session, state=state)


async def answered(sessions: Sessions, session: Session, tool: ToolId) -> None:
    """Remember that a tool answered; only named conversations have memory."""
    while session.id != UNNAMED:
        now = await sessions.load(session.id) or Session(id=session.id)
        if tool.name in now.answered:
            return
        try:
            await sessions.save(replace(now, answered=now.answered | {tool.name}))
        except SessionConflict:
            continue
        return
