"""Messages and `count_tokens`: tool use, tool choice, prompt caching, tool search; and what Bedrock adds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from strict_upstreams.checks import badly_named, listed, repeated, unfit_schema, without_tools

NAME = r"[a-zA-Z0-9_-]{1,128}"
MOST_BREAKPOINTS = 4
MOST_DEFERRED = 10_000
SEARCHES = {
    "tool_search_tool_bm25_20251119": "tool_search_tool_bm25",
    "tool_search_tool_regex_20251119": "tool_search_tool_regex",
}
"""The search tools' types, and the name that each has to have."""
CLIENTS_SEARCH = re.compile("tool_?search|search_?tools", re.IGNORECASE)
"""A client may search itself, with a tool whose results refer to deferred ones; Claude Code's is `ToolSearch`, the
gateway's `search_tools`."""


def problems(body: Mapping[str, Any]) -> list[str]:
    return list(_problems(body))


def _problems(body: Mapping[str, Any]) -> Iterator[str]:
    messages, wrong = listed(body, "messages")
    yield from wrong if "messages" in body else ["messages is missing"]
    tools, wrong = listed(body, "tools")
    yield from wrong
    named = [tool for tool in tools if "name" in tool]
    custom = [tool for tool in tools if tool.get("type") in (None, "custom")]
    yield from badly_named([tool.get("name") for tool in custom], NAME)
    yield from repeated(tool["name"] for tool in named)
    for tool in custom:
        yield from unfit_schema(str(tool.get("name")), tool.get("input_schema"), required=True)
    yield from _choice(body, {tool["name"] for tool in named}, tools)
    yield from _deferred(tools, body.get("tool_choice", {}))
    blocks = [block for message in messages for block in _blocks(message.get("content"))]
    yield from _history(blocks, {tool["name"] for tool in named}, tools)
    for message in messages:
        yield from _searched(message, {tool["name"] for tool in named}, tools)
    yield from _caching(body, tools, blocks)


def _choice(body: Mapping[str, Any], names: set[str], tools: list[Any]) -> Iterator[str]:
    if not tools:
        yield from without_tools(body, ["tool_choice"])
    choice = body.get("tool_choice", {"type": "auto"})
    if choice.get("type") not in ("auto", "any", "tool", "none"):
        yield f"tool_choice: the type is {choice.get('type')!r}"
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"tool_choice: tool {choice.get('name')!r} not found in provided tools"


def _deferred(tools: list[Any], choice: Mapping[str, Any]) -> Iterator[str]:
    """That the forced tool may not be deferred is not documented, and so not relied on."""
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    searching = [tool for tool in tools if tool.get("type") in SEARCHES]
    by_client = any(CLIENTS_SEARCH.search(str(tool.get("name"))) for tool in tools if not tool.get("defer_loading"))
    if deferred and len(deferred) == len(tools):
        yield "At least one tool must have defer_loading=false. All tools cannot be deferred."
    if deferred and not searching and not by_client:
        yield "tools: there are deferred tools, and none that searches for them"
    if len(deferred) > MOST_DEFERRED:
        yield f"tools: {len(deferred)} are deferred, and the most is {MOST_DEFERRED}"
    for tool in deferred:
        if tool.get("cache_control"):
            yield (
                f"Tool {tool['name']!r} cannot have both defer_loading=true and cache_control set. "
                "Tools with defer_loading cannot use prompt caching."
            )
        if tool in searching:
            yield f"tools: {tool['name']!r} searches, and is deferred"
        if choice.get("name") == tool["name"]:
            yield f"tool_choice: {tool['name']!r} is deferred"
    for tool in searching:
        if tool.get("name") != SEARCHES[tool["type"]]:
            yield f"tools: a {tool['type']} has the name {tool.get('name')!r}"


def _searched(message: Mapping[str, Any], names: set[str], tools: list[Any]) -> Iterator[str]:
    """A search and its result are parts of one answer, and the tool that searched is sent as long as they are."""
    blocks = [block for block in _blocks(message.get("content")) if isinstance(block, Mapping)]
    used = [block for block in blocks if block.get("type") == "server_tool_use" and block["name"] in SEARCHES.values()]
    found = [block["tool_use_id"] for block in blocks if block.get("type") == "tool_search_tool_result"]
    if [block["id"] for block in used] != found:
        yield f"messages: searches {[block['id'] for block in used]} have results {found}"
    if used and message.get("role") != "assistant":
        yield "messages: only the assistant searches"
    for name in sorted({block["name"] for block in used} - names) if tools else ():
        yield f"messages: {name} was used, and is not provided"


def _history(blocks: list[Mapping[str, Any]], names: set[str], tools: list[Any]) -> Iterator[str]:
    if not tools and any(block.get("type") in ("tool_use", "tool_result") for block in blocks):
        yield "tools must be defined when using tool_use and tool_result blocks (Bedrock)"
    for block in blocks:
        if block.get("type") == "tool_reference" and block["tool_name"] not in names:
            yield f"Tool reference {block['tool_name']!r} not found in available tools"


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    """The blocks of a content, and those inside of them."""
    for block in content if isinstance(content, list) else []:
        yield block
        inner = block.get("content")
        yield from _blocks(inner.get("tool_references") if isinstance(inner, Mapping) else inner)


def _caching(body: Mapping[str, Any], tools: list[Any], blocks: list[Mapping[str, Any]]) -> Iterator[str]:
    """At most four breakpoints, those that live longer first: tools, then system, then messages."""
    marked = [*tools, *_blocks(body.get("system")), *blocks]
    breakpoints = [each["cache_control"] for each in marked if each.get("cache_control")]
    if len(breakpoints) + bool(body.get("cache_control")) > MOST_BREAKPOINTS:
        yield f"cache_control: {len(breakpoints)} breakpoints are more than {MOST_BREAKPOINTS}"
    lives = [each.get("ttl", "5m") for each in breakpoints]
    if lives != sorted(lives, key=["1h", "5m"].index):
        yield f"cache_control: a longer ttl comes after a shorter one: {lives}"
