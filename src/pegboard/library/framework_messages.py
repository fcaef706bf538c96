"""The messages of agent frameworks, told by the package of their class: none of these packages is imported here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pegboard.library.framework_tools import MOST_KINDS, packages_of
from pegboard.model import Message, Part, Role

Called = dict[str, str]
"""The names of called tools by the ids of their calls: a result often has the id alone."""
ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool-call": "assistant",
    "tool-response": "tool",
}
"""Roles by name, including LangChain's message types and those of smolagents."""


def framework_messages(said: object, called: Called) -> Iterator[Message] | None:
    """The messages that an object of a framework stands for; None if it is of no known framework.

    ``called`` is read for results and added to by calls.
    """
    kind: Any = type(said)
    read = _reader_of(kind)
    return None if read is None else read(said, called)


def is_framework_message(said: object) -> bool:
    """Whether an object is of a known framework; its message may have no text, as one with an image alone."""
    kind: Any = type(said)
    return _reader_of(kind) is not None


@lru_cache(maxsize=MOST_KINDS)
def _reader_of(kind: type) -> Callable[[Any, Called], Iterator[Message]] | None:
    return next((READERS[package] for package in packages_of(kind) if package in READERS), None)


def result(text: object, name: object, *, failed: bool = False) -> Message:
    """A tool's result, which is not what the user said (P1)."""
    return Message(
        role="tool", parts=(Part(kind="tool_result", text=plain_text(text), tool=_text(name), failed=failed),)
    )


def call(name: object) -> Part:
    return Part(kind="tool_call", tool=_text(name))


def _text(name: object) -> str | None:
    """A name as it was given; None for what is no text."""
    return name if isinstance(name, str) else None


def plain_text(content: object) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)


def _pydantic_ai(said: Any, called: Called) -> Iterator[Message]:
    for part in said.parts:
        content = getattr(part, "content", None)
        match getattr(part, "part_kind", ""):
            case "user-prompt":
                yield Message(role="user", parts=tuple(_texts(content)))
            case "system-prompt":
                yield Message(role="system", parts=tuple(_texts(content)))
            case "text":
                yield Message(role="assistant", parts=tuple(_texts(content)))
            case "tool-call":
                yield Message(role="assistant", parts=(call(part.tool_name),))
            case "tool-return":
                yield result(content, part.tool_name, failed=getattr(part, "outcome", "success") != "success")
            case "retry-prompt" if part.tool_name is not None:
                yield result(content, part.tool_name, failed=True)


def _texts(content: object) -> Iterator[Part]:
    """The texts of a content that is one text, or a list of texts and images."""
    for each in [content] if isinstance(content, str) or not isinstance(content, Sequence) else content:
        text = each if isinstance(each, str) else getattr(each, "text", getattr(each, "content", None))
        if isinstance(text, str) and text:
            yield Part(text=text)


def _google_adk(said: Any, called: Called) -> Iterator[Message]:
    """An event, which may have no content, or a content."""
    content = getattr(said, "content", said)
    parts = [] if content is None else list(content.parts or ())
    for part in parts:
        if (answer := part.function_response) is not None:
            yield result(answer.response, answer.name)
    rest = [*(Part(text=part.text) for part in parts if part.text and not part.thought)]
    rest += [call(part.function_call.name) for part in parts if part.function_call is not None]
    if rest:
        yield Message(role=ROLES.get(getattr(content, "role", None) or "user", "user"), parts=tuple(rest))


def _llama_index(said: Any, called: Called) -> Iterator[Message]:
    more: Mapping[str, Any] = said.additional_kwargs or {}
    role = ROLES[str(getattr(said.role, "value", said.role))]
    if role == "tool":
        yield result(said.content or "", more.get("name") or called.get(more.get("tool_call_id") or ""))
        return
    parts = [Part(text=said.content)] if said.content else []
    asked = [*said.blocks, *(more.get("tool_calls") or ())]
    for each in asked:
        function = _of(each, "function") or each
        name = _of(each, "tool_name") or _of(function, "name")
        if isinstance(name, str):
            called[_of(each, "tool_call_id") or _of(each, "tool_id") or _of(each, "id") or ""] = name
            parts.append(call(name))
    yield Message(role=role, parts=tuple(parts))


def _autogen(said: Any, called: Called) -> Iterator[Message]:
    """A model's messages, and the chat messages of agents. What other agents say, such as a handoff, arrives as a
    user's message with the agent's name as its source."""
    kind, content = type(said).__name__, getattr(said, "content", "")
    if isinstance(content, str):
        is_user = getattr(said, "source", "user").startswith(("user", "human"))
        others: Role = "user" if is_user and kind != "AssistantMessage" else "assistant"
        yield Message(role="system" if kind == "SystemMessage" else others, parts=tuple(_texts(content)))
        return
    texts = tuple(_texts([each for each in content if isinstance(each, str)]))
    if texts:
        yield Message(role="user", parts=texts)
    for each in content:
        if hasattr(each, "arguments"):
            yield Message(role="assistant", parts=(call(each.name),))
        elif hasattr(each, "call_id"):
            yield result(each.content, each.name, failed=bool(getattr(each, "is_error", False)))


def _agent_framework(said: Any, called: Called) -> Iterator[Message]:
    parts: list[Part] = []
    for each in said.contents or ():
        match each.type:
            case "text" if each.text:
                parts.append(Part(text=each.text))
            case "function_call":
                called[each.call_id or ""] = each.name
                parts.append(call(each.name))
            case "function_result":
                failed = getattr(each, "exception", None) is not None
                yield result(each.result, called.get(each.call_id or ""), failed=failed)
    if parts:
        yield Message(role=ROLES[str(getattr(said.role, "value", said.role))], parts=tuple(parts))


def _haystack(said: Any, called: Called) -> Iterator[Message]:
    for each in said.tool_call_results:
        yield result(each.result, each.origin.tool_name, failed=bool(each.error))
    parts = [*(Part(text=text) for text in said.texts if text), *(call(each.tool_name) for each in said.tool_calls)]
    if parts:
        yield Message(role=ROLES[said.role.value], parts=tuple(parts))


def _smolagents(said: Any, called: Called) -> Iterator[Message]:
    """A message for the model. Results say in their text what they answer."""
    role = ROLES[str(getattr(said.role, "value", said.role))]
    content = said.content if isinstance(said.content, str) else [_of(each, "text") for each in said.content or ()]
    texts = [part.text for part in _texts(content)]
    if role == "tool":
        yield result("\n".join(texts), None)
        return
    calls = [call(_of(_of(each, "function"), "name")) for each in said.tool_calls or ()]
    yield Message(role=role, parts=(*(Part(text=text) for text in texts), *calls))


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


READERS: Mapping[str, Callable[[Any, Called], Iterator[Message]]] = {
    "agent_framework": _agent_framework,
    "autogen_agentchat": _autogen,
    "autogen_core": _autogen,
    "google": _google_adk,
    "haystack": _haystack,
    "llama_index": _llama_index,
    "pydantic_ai": _pydantic_ai,
    "smolagents": _smolagents,
}
"""Packages to what reads their messages. crewai, strands and DSPy keep messages as dictionaries."""
