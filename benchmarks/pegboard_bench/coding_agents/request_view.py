"""What a request of an agent's says, in any wire format: the tools that its model sees, and its blocks for a cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pegboard.catalog import compact_json
from pegboard_bench.cache.prompts import Mark
from pegboard_bench.coding_agents.atlassian import is_one

Body = Mapping[str, Any]
MARK = "cache_control"
UNSENT = (MARK, "id", "call_id", "tool_use_id", "tool_call_id")
"""Fields of a block that are no part of the prompt, or differ from run to run."""
OF_A_TEXT = {"role", "content", "output_config"}
"""Fields of a message that is nothing but text."""

FOR_THE_PROVIDER = '{"type":"text","text":"x-anthropic-billing-header:'
"""Claude Code's first line of the system prompt, another one for each first message. We take it that its provider,
whose format marks for caching it would undo, takes it out."""


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


def without_servers(body: Body) -> Body:
    """The request without the definitions of tools of MCP servers, as if somebody could do without any."""
    left: dict[str, Any] = {**body, "tools": list(_without(body.get("tools") or ()))}
    for field in ("messages", "contents", "input"):
        if isinstance(body.get(field), list):
            left[field] = [
                {**item, "tools": list(_without(item["tools"]))} if item.get("type") == "additional_tools" else item
                for item in body[field]
            ]
    return left


def _without(tools: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for tool in tools:
        if "functionDeclarations" in tool:
            yield {**tool, "functionDeclarations": list(_without(tool["functionDeclarations"]))}
        elif tool.get("type") == "namespace":
            own = [each for each in tool["tools"] if not is_one(f"{tool['name']}.{_name(each)}")]
            yield from ({**tool, "tools": own} for _ in own[:1])
        elif not is_one(_name(tool)):
            yield tool


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
    of = tool.get("function") or tool.get("custom") or {}
    return str(tool.get("name") or of.get("name") or tool.get("type"))


def _messages(body: Body) -> Sequence[Mapping[str, Any]]:
    said = body.get("messages") or body.get("contents") or body.get("input") or []
    return said if isinstance(said, list) else [{"role": "user", "content": said}]


def _system(body: Body) -> Iterator[object]:
    for field in ("system", "instructions", "systemInstruction"):
        said = body.get(field)
        parts = said if isinstance(said, list) else [said] if said else ()
        yield from (part for part in parts if not _text(part).startswith(FOR_THE_PROVIDER))


def _said(body: Body, deferred: dict[str, Mapping[str, Any]]) -> Iterator[object]:
    """Blocks of Anthropic's messages, each with its role; messages, items and contents of the others as they are.

    A message that is a string is one block of text: Claude Code sends a message once as a block, where it ends in a
    breakpoint, and as a string from then on.
    """
    for message in _messages(body):
        content = message.get("content")
        if "messages" in body and isinstance(content, str) and message.keys() <= OF_A_TEXT:
            yield {"type": "text", "text": content, "role": message["role"]}
        elif "messages" not in body or not isinstance(content, list):
            yield message
        else:
            for block in content:
                yield {**block, "role": message.get("role")}
                yield from _referred(block, deferred)


def _referred(block: Mapping[str, Any], deferred: dict[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The definitions that a search's result is the first to refer to."""
    inner = block.get("content")
    for each in inner if isinstance(inner, list) else ():
        if each.get("type") == "tool_reference" and each["tool_name"] in deferred:
            yield deferred.pop(each["tool_name"])
