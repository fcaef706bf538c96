"""The items of responses: which of them are calls that somebody else than the provider has to answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.gateways.llm.reading import objects_of, text_of
from pegboard.gateways.llm.way_back.wire import Asked, Document, Hides

FUNCTIONS = ("function_call", "custom_tool_call")


def is_call(item: Mapping[str, Any]) -> bool:
    """Whether the caller is waited for: shells and computers are called by their type, and need approval as that."""
    kind = text_of(item.get("type"))
    if kind == "mcp_approval_request":
        return True
    return "call_id" in item and not kind.endswith("_output") and not kind.startswith("tool_search")


def asked(item: Mapping[str, Any]) -> Asked:
    """A call; one of no function of the request's has a name that no tool has."""
    kind, name = text_of(item.get("type")), text_of(item.get("name"))
    if kind not in FUNCTIONS or item.get("namespace"):
        name = f"{kind}:{name}"
    arguments = text_of(item.get("arguments")) or text_of(item.get("input"))
    return Asked(name=name, arguments=arguments, id=text_of(item.get("call_id")))


def unseen(response: Document, hides: Hides) -> Document:
    """A response that repeats the request's tools, without those that are none of the client's."""
    if not isinstance(response.get("tools"), list):
        return response
    tools = [tool for tool in objects_of(response["tools"]) if not hides(text_of(tool.get("name")))]
    return response | {"tools": tools}
