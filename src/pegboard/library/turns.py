"""A conversation, in any form that agents keep it in, as a turn; and what it remembers between turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.errors import ConfigError, SessionConflict
from pegboard.library.framework_messages import (
    ROLES,
    Called,
    call,
    framework_messages,
    is_framework_message,
    result,
)
from pegboard.model import Message, Part, Role, Session, ToolId, Turn
from pegboard.protocols import Sessions
from pegboard.retrieval import mark_notes

UNNAMED = Session().id
SAID = ("content", "parts", "tool_calls", "function_call")
"""The keys of a message's content."""
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""What reading raises where a message has a value of another kind, or lacks one."""
CALLS = frozenset({"function_call", "custom_tool_call"})
RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
"""Items of OpenAI Responses that are not messages. Other items, such as reasoning, do not affect a turn."""
KNOWN = (
    "messages of OpenAI (Chat Completions, Responses), Anthropic, Gemini (contents), Bedrock, LangChain or another "
    "agent framework"
)
Said = Turn | str | Mapping[str, Any] | Sequence[Any]
"""A turn, the user's text, or messages in the form of a provider or an agent framework."""


def turn_of(said: Said) -> Turn:
    """The turn; one without a text where a framework's messages have none, as images have. Raises ConfigError for
    messages in an unknown form.

    >>> turn_of([{"role": "user", "content": [{"type": "text", "text": "the tide?"}]}]).messages[0].text
    'the tide?'
    """
    if isinstance(said, Turn):
        return said
    if isinstance(said, str):
        return Turn.ask(said)
    called: Called = {}
    listed = _listed(said)
    messages = tuple(message for each in listed for message in _read(each, called))
    if listed and not messages and not any(map(is_framework_message, listed)):
        raise _unreadable(said, "holds no message")
    return mark_notes(Turn(messages=messages))


def _listed(said: Any) -> Sequence[Any]:
    return said if isinstance(said, Sequence) else [said]


def _read(said: Any, called: Called) -> Sequence[Message]:
    try:
        return list(_messages(said, called))
    except MALFORMED as error:
        raise _unreadable(said, "does not have the fields and values of a message") from error


def _messages(said: Any, called: Called) -> Iterator[Message]:
    if isinstance(said, Message):
        yield said
        return
    if (of_framework := framework_messages(said, called)) is not None:
        yield from of_framework
        return
    fields = _plain(said)
    if not isinstance(fields, Mapping):
        raise _unreadable(said, "is not a message")
    kind = fields.get("type")
    if kind in CALLS:
        called[str(fields.get("call_id"))] = str(fields.get("name"))
        yield Message(role="assistant", parts=(call(fields.get("name")),))
    elif kind in RESULTS:
        yield result(fields.get("output"), called.get(str(fields.get("call_id"))))
    elif (name := _role(fields)) is not None:
        yield from _spoken(said, name, fields, called)
    elif not isinstance(kind, str):
        raise _unreadable(said, "has no role")


def _role(fields: Mapping[str, Any]) -> str | None:
    """LangChain's messages have a type in place of a role; Gemini's contents may have no role, which means the user."""
    kind = fields.get("type")
    return fields.get("role") or (kind if kind in ROLES else "user" if "parts" in fields else None)


def _spoken(said: Any, name: str, fields: Mapping[str, Any], called: Called) -> Iterator[Message]:
    """A message, split in two if it holds tool results: results are not what the user said (P1)."""
    role = ROLES.get(name)
    if role is None:
        raise _unreadable(said, f"has the role {name!r}, which is none of {', '.join(ROLES)}")
    if not any(key in fields for key in SAID):
        raise _unreadable(said, f"has none of {', '.join(SAID)}")
    parts = tuple(_parts(fields, role, called))
    results = tuple(part for part in parts if part.kind == "tool_result")
    rest = tuple(part for part in parts if part.kind != "tool_result")
    if results:
        yield Message(role="tool", parts=results)
    if rest or not results:
        yield Message(role=role, parts=rest)


def _parts(fields: Mapping[str, Any], role: Role, called: Called) -> Iterator[Part]:
    """Text, tool results (Anthropic, Gemini and Bedrock put them into user messages), and calls by name."""
    content = fields.get("content") if fields.get("parts") is None else fields["parts"]
    if role == "tool":
        yield from _answers(content, fields, called)
    elif isinstance(content, str):
        yield from [Part(text=content)] if content else []
    else:
        yield from _blocks(content, called)
    for each in [*(fields.get("tool_calls") or ()), *filter(None, [fields.get("function_call")])]:
        said = _plain(each)
        name = (said.get("function") or said).get("name")
        called[str(said.get("id"))] = name
        yield call(name)


def _answers(content: Any, fields: Mapping[str, Any], called: Called) -> Iterator[Part]:
    """The result in a message of a tool: what its blocks do not say of it, the message says."""
    name = called.get(str(fields.get("tool_call_id"))) or fields.get("name")
    failed = fields.get("status") == "error"  # as in LangChain
    if isinstance(content, str):
        yield from result(content, name, failed=failed).parts
        return
    for part in _blocks(content, called):
        if part.kind in ("text", "tool_result"):
            yield replace(part, kind="tool_result", tool=part.tool or name, failed=part.failed or failed)
        else:
            yield part


def _blocks(content: Any, called: Called) -> Iterator[Part]:
    for block in content if isinstance(content, Sequence) else ():
        yield from _part(_plain(block), called)


def _part(block: Any, called: Called) -> Iterator[Part]:
    match block:
        case str(text):
            yield Part(text=text)
        case {"type": "tool_result", **rest}:
            name, failed = called.get(str(rest.get("tool_use_id"))), bool(rest.get("is_error"))
            yield from result(rest.get("content"), name, failed=failed).parts
        case {"toolResult": Mapping() as answer}:
            name, failed = called.get(str(answer.get("toolUseId"))), answer.get("status") == "error"
            yield from result(_of_bedrock(answer.get("content")), name, failed=failed).parts
        case {"type": "tool_use" | "tool_call", "name": str(name)}:
            called[str(block.get("id"))] = name
            yield call(name)
        case {"toolUse": {"name": str(name), **rest}}:
            called[str(rest.get("toolUseId"))] = name
            yield call(name)
        case {"functionCall": {"name": str(name)}} | {"function_call": {"name": str(name)}}:
            yield call(name)
        case {"functionResponse": Mapping() as answer} | {"function_response": Mapping() as answer}:
            yield from result(answer.get("response"), answer.get("name")).parts
        case {"text": str(text)} if not block.get("thought"):
            yield Part(text=text)


def _of_bedrock(content: Any) -> object:
    """The text of a result, where it is nothing else."""
    texts = [block.get("text") for block in content or ()]
    return "\n".join(map(str, texts)) if texts and None not in texts else content


def _plain(value: Any) -> Any:
    """The fields of an SDK object."""
    return value.model_dump() if hasattr(value, "model_dump") else value


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
