"""What a conversation says about its calls. Everything an adapter remembers between turns is in the messages, so any
process can go on with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pegboard.errors import ToolNotAvailable
from pegboard.gateways.llm.tool_search.tool import NAME
from pegboard.model import Message, Part


def refused_names(messages: Sequence[Message]) -> list[str]:
    """The tool names of calls that were refused since the user's last message, in order."""
    found: list[str] = []
    for message in messages:
        if message.role == "user":
            found = []
        for part in message.parts:
            said = _document(part) if ToolNotAvailable.code in part.text else {}
            if said.get("error") == ToolNotAvailable.code:
                found.append(str(said.get("tool")))
    return found


def found_names(messages: Sequence[Message]) -> list[str]:
    """The tools that searches found, each once, in order."""
    texts = (_document(part) for part in _results(messages) if part.tool == NAME)
    lists = (said.get("found") for said in texts)
    listed = (each for found in lists if isinstance(found, list) for each in found)
    return list(dict.fromkeys(str(each.get("name")) for each in listed if isinstance(each, dict)))


def answered_names(messages: Sequence[Message]) -> frozenset[str]:
    """The tools that gave a result which is no error, for preconditions."""
    answers = (part for part in _results(messages) if not part.failed and ToolNotAvailable.code not in part.text)
    return frozenset(part.tool for part in answers if part.tool is not None)


def _results(messages: Sequence[Message]) -> Iterator[Part]:
    return (part for message in messages for part in message.parts if part.kind == "tool_result")


def _document(part: Part) -> dict[str, Any]:
    """A result that is a JSON object. Frameworks put words around a result, or wrap it as ``{"result": …}``."""
    start, end = part.text.find("{"), part.text.rfind("}")
    if part.kind != "tool_result" or start < 0:
        return {}
    try:
        said = json.loads(part.text[start : end + 1])
    except (ValueError, RecursionError):
        return {}
    while isinstance(said, dict) and len(said) == 1:
        inner = next(iter(said.values()))
        try:
            said = json.loads(inner) if isinstance(inner, str) else inner
        except (ValueError, RecursionError):
            return {}
    return said if isinstance(said, dict) else {}
