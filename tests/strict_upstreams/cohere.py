"""Chat v2: tools, `tool_choice` and `strict_tools` (docs.cohere.com/reference/chat)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from strict_upstreams.checks import listed, repeated, unfit_schema, without_tools


def problems(body: Mapping[str, Any]) -> list[str]:
    return list(_problems(body))


def _problems(body: Mapping[str, Any]) -> Iterator[str]:
    _, wrong = listed(body, "messages")
    yield from wrong if "messages" in body else ["messages is missing"]
    tools, wrong = listed(body, "tools")
    yield from wrong
    functions = [tool.get("function", {}) for tool in tools]
    if any(tool.get("type") != "function" or not each.get("name") for tool, each in zip(tools, functions, strict=True)):
        yield "tools: each has to be a function with a name"
    yield from repeated(each["name"] for each in functions if "name" in each)
    for each in functions:
        yield from unfit_schema(str(each.get("name")), each.get("parameters"), required=False)
    if not tools:
        yield from without_tools(body, ["tool_choice", "strict_tools"])
    if body.get("tool_choice", "NONE") not in ("NONE", "REQUIRED"):
        yield f"tool_choice: {body['tool_choice']!r} is neither NONE nor REQUIRED"
