"""What a request of an agent's says, in any wire format: the tools that its model sees, and its blocks for a cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.bench.cache.prompts import Mark
from pegboard.catalog import compact_json

Body = Mapping[str, Any]
MARK = "cache_control"
UNSENT = (MARK, "id", "call_id", "tool_use_id", "tool_call_id")
"""Fields of a block that are no part of the prompt, or differ from run to run."""


def visible(body: Body) -> frozenset[str]:
    """The names of the tools that a model sees with their definitions; deferred ones it does not see."""
    return frozenset(_name(tool) for tool in _tools(body) if not tool.get("defer_loading"))


def blocks(body: Body) -> tuple[list[str], list[Mark]]:
    """What a request's prompt is made of, in the order in which it is cached: tools, system, messages; and its marks.

    A definition that was deferred stands where it was first referred to.
    """
    deferred = {_name(tool): tool for tool in _tools(body) if tool.get("defer_loading")}
    shown = [tool for tool in _listed(body) if not tool.get("defer_loading")]
    parts = [*shown, *_system(body), *_said(body, deferred)]
    marks = [Mark(block=place) for place, part in enumerate(parts, 1) if isinstance(part, Mapping) and part.get(MARK)]
    if body.get(MARK):
        marks.append(Mark(block=len(parts)))
    return [_text(part) for part in parts], marks


def _text(part: object) -> str:
    if not isinstance(part, Mapping):
        return compact_json(part)
    return compact_json({key: value for key, value in part.items() if key not in UNSENT})


def _listed(body: Body) -> Iterator[Mapping[str, Any]]:
    """Tools as they stand in the request, Gemini's out of their groups."""
    for tool in body.get("tools") or ():
        yield from tool.get("functionDeclarations", [tool])


def _tools(body: Body) -> Iterator[Mapping[str, Any]]:
    """All of them, also those in namespaces and in items of the input."""
    added = [item["tools"] for item in _messages(body) if item.get("type") == "additional_tools"]
    for tool in (*_listed(body), *(tool for tools in added for tool in tools)):
        if tool.get("type") == "namespace":
            yield from ({"name": f"{tool['name']}.{_name(each)}"} for each in tool["tools"])
        else:
            yield tool


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("function", {}).get("name") or tool.get("type"))


def _messages(body: Body) -> Sequence[Mapping[str, Any]]:
    said = body.get("messages") or body.get("contents") or body.get("input") or []
    return said if isinstance(said, list) else [{"role": "user", "content": said}]


def _system(body: Body) -> Iterator[object]:
    for field in ("system", "instructions", "systemInstruction"):
        said = body.get(field)
        yield from said if isinstance(said, list) else [said] if said else ()


def _said(body: Body, deferred: dict[str, Mapping[str, Any]]) -> Iterator[object]:
    """Blocks of Anthropic's messages, each with its role; messages, items and contents of the others as they are."""
    for message in _messages(body):
        content = message.get("content")
        if "messages" not in body or not isinstance(content, list):
            yield message
            continue
        for block in content:
            yield {**block, "role": message.get("role")}
            inner = block.get("content")
            for each in inner if isinstance(inner, list) else ():
                if each.get("type") == "tool_reference" and each["tool_name"] in deferred:
                    yield deferred.pop(each["tool_name"])
