"""Namespaces: groups of functions in a request's array of tools, each function a tool of its own.

A tool in a namespace is called `NAMESPACE.NAME` here: function names have no dots. A call in the conversation has the
two in two members. https://developers.openai.com/api/docs/guides/function-calling#defining-namespaces, read 2026-11-23
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.json_reader import objects_of, text_of
from pegboard.gateways.llm.formats.json_spans import Span, elements, members
from pegboard.gateways.llm.formats.protocol import OfferedTool
from pegboard.gateways.llm.formats.tool_arrays import MOST_REMEMBERED, CachedTool, offered, remembering

FUNCTIONS = ("function", "custom")
NAMESPACE = "namespace"
OWN = "pegboard_tools"
"""The namespace in which the gateway loads tools that the client offers outside any."""


class _Tool(CachedTool):
    type: str = "function"
    name: str | None = None
    tools: msgspec.Raw = msgspec.Raw()


TOOLS = msgspec.json.Decoder(list[_Tool])


def qualified(name: str, namespace: str) -> str:
    """The name of a tool here.

    The API gives a function that a search found outside any namespace one of its own name.
    """
    return f"{namespace}.{name}" if namespace not in ("", name, OWN) else name


def called_name(item: Mapping[str, Any]) -> str:
    """The name of the tool that an item calls."""
    return qualified(text_of(item.get("name")), text_of(item.get("namespace")))


def loaded_tools(items: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The tools that searches in this conversation have loaded."""
    for item in items:
        if item.get("type") == "tool_search_output":
            for tool in objects_of(item.get("tools")):
                inside = objects_of(tool.get("tools")) if tool.get("type") == NAMESPACE else []
                yield from filter(None, [text_of(tool.get("name"))])
                yield from (called_name({**each, "namespace": tool.get("name")}) for each in inside)


@remembering
def offered_tools(array: bytes) -> tuple[OfferedTool, ...]:
    """The tools of an array, those in namespaces one by one."""
    return tuple(tool for each in _entries(array) for tool in (_inside(array, *each) or [_entry(array, *each)]))


@remembering
def offered_entries(array: bytes) -> tuple[OfferedTool, ...]:
    """The tools of an array, with each namespace as one hosted tool."""
    return tuple(_entry(array, *each) for each in _entries(array))


def namespaced(array: bytes) -> Mapping[str, Mapping[str, str]]:
    """The members that name a tool in a call, by the tool's name, for an array's tools in namespaces."""
    return (_namespaced if len(array) <= MOST_REMEMBERED else _namespaced.__wrapped__)(array)


@lru_cache(maxsize=32)
def _namespaced(array: bytes) -> Mapping[str, Mapping[str, str]]:
    tools = offered_tools(array, Span(0, len(array)))
    return {tool.name: {"name": tool.own_name, "namespace": tool.namespace} for tool in tools if tool.namespace}


def _entries(array: bytes) -> list[tuple[Span, _Tool]]:
    return list(zip(elements(array, Span(0, len(array))), TOOLS.decode(array), strict=True))


def _entry(array: bytes, span: Span, tool: _Tool) -> OfferedTool:
    hosted, searches = tool.type not in FUNCTIONS, tool.type == "tool_search"
    return offered(array, span, tool.name or "", tool, hosted=hosted, searches=searches)


def _inside(array: bytes, span: Span, entry: _Tool) -> list[OfferedTool]:
    """The functions of a namespace; none if it is something else, or contains something else."""
    if entry.type != NAMESPACE or not entry.name or not bytes(entry.tools).startswith(b"["):
        return []
    try:
        tools = TOOLS.decode(entry.tools)
        spans = elements(array, members(array, span)["tools"].value)
    except (msgspec.DecodeError, RequestNotUnderstood):
        return []
    if any(tool.type not in FUNCTIONS or not tool.name for tool in tools):
        return []
    return [
        msgspec.structs.replace(
            offered(array, own, qualified(tool.name or "", entry.name), tool), namespace=entry.name, entry=span
        )
        for own, tool in zip(spans, tools, strict=True)
    ]
