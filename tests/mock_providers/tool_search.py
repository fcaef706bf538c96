"""Anthropic's search for deferred tools: what is in the prompt, what a search finds, and the blocks that say so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import bm25s

MOST_FOUND = 5
NAME = "tool_search_tool_bm25"


def in_prompt(asked: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the tools that the model sees: those that are not deferred, and those that were found before."""
    found = set(referenced(asked["messages"]))
    return tuple(
        tool["name"] for tool in asked.get("tools", ()) if not tool.get("defer_loading") or tool["name"] in found
    )


def prompt(asked: Mapping[str, Any]) -> str:
    """What the provider's cache knows a request by: tools that are not deferred, system text, messages."""
    loaded = [tool for tool in asked.get("tools", ()) if not tool.get("defer_loading")]
    unmarked = [{key: value for key, value in tool.items() if key != "cache_control"} for tool in loaded]
    return "\n".join(map(json.dumps, [*unmarked, asked.get("system", ""), *asked["messages"]]))


def referenced(messages: list[Any]) -> Iterator[str]:
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            if block["type"] == "tool_search_tool_result":
                yield from (each["tool_name"] for each in block["content"]["tool_references"])
            elif block["type"] == "tool_result" and isinstance(block.get("content"), list):  # a search of the client's
                yield from (each["tool_name"] for each in block["content"] if each["type"] == "tool_reference")


def searched(asked: Mapping[str, Any], query: str, id_: str) -> list[dict[str, Any]]:
    """The search, and what it found."""
    found = [{"type": "tool_reference", "tool_name": name} for name in _found(asked, query)]
    return [
        {"type": "server_tool_use", "id": id_, "name": NAME, "input": {"query": query}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": id_,
            "content": {"type": "tool_search_tool_search_result", "tool_references": found},
        },
    ]


def _found(asked: Mapping[str, Any], query: str) -> list[str]:
    waiting = [tool for tool in asked["tools"] if tool.get("defer_loading")]
    assert any(tool["name"] == NAME for tool in asked["tools"]), "nothing searches for tools"
    assert len(query) <= 500
    if not waiting:
        return []
    index = bm25s.BM25()
    texts = [f"{tool['name'].replace('_', ' ')} {tool.get('description', '')}" for tool in waiting]
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    asking = bm25s.tokenize([query], show_progress=False)
    ranked, scores = index.retrieve(asking, k=min(MOST_FOUND, len(waiting)), show_progress=False)
    return [waiting[place]["name"] for place, score in zip(ranked[0], scores[0], strict=True) if score > 0]
