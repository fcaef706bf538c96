"""Converse: `toolConfig` (Bedrock Runtime API reference: ToolConfiguration, Tool, ToolSpecification, ToolChoice), as
strict about schemas as Amazon Nova."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from strict_upstreams.checks import badly_named, listed, repeated, unfit_schema

NAME = r"[a-zA-Z0-9_-]{1,64}"
MEMBERS = {"toolSpec", "cachePoint", "systemTool"}
SCHEMA_KEYS = {"type", "properties", "required"}
CHOICES = {"auto", "any", "tool"}
MOST_CACHE_POINTS = 4


def problems(body: Mapping[str, Any]) -> list[str]:
    return list(_problems(body))


def _problems(body: Mapping[str, Any]) -> Iterator[str]:
    messages, wrong = listed(body, "messages")
    yield from wrong if "messages" in body else ["messages is missing"]
    uses = [
        block for message in messages for block in message.get("content", []) if {"toolUse", "toolResult"} & {*block}
    ]
    if "toolConfig" not in body:
        if uses:
            yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        return
    config = body["toolConfig"]
    tools, wrong = listed(config, "tools")
    yield from wrong if "tools" in config else ["toolConfig.tools is missing"]
    for place, tool in enumerate(tools):
        if len({*tool} & MEMBERS) != 1 or {*tool} - MEMBERS:
            yield f"toolConfig.tools.{place}: exactly one of {sorted(MEMBERS)} must be set"
        if "cachePoint" in tool and (place == 0 or "cachePoint" in tools[place - 1]):
            yield f"toolConfig.tools.{place}: a cache point has to follow a tool"
    named = [tool["toolSpec"] for tool in tools if "toolSpec" in tool]
    yield from badly_named([each.get("name") for each in named], NAME)
    yield from repeated(each["name"] for each in named)
    for each in named:
        schema = each.get("inputSchema", {}).get("json")
        yield from unfit_schema(each["name"], schema, required=True)
        if others := {*(schema if isinstance(schema, Mapping) else ())} - SCHEMA_KEYS:
            yield f"tools: the schema of {each['name']!r} has {sorted(others)} at its top level"
    if sum("cachePoint" in tool for tool in tools) > MOST_CACHE_POINTS:
        yield "toolConfig.tools: too many cache points"
    choice = config.get("toolChoice", {"auto": {}})
    if len(choice) != 1 or {*choice} - CHOICES:
        yield f"toolConfig.toolChoice: exactly one of {sorted(CHOICES)} must be set"
    if "tool" in choice and choice["tool"].get("name") not in {each["name"] for each in named}:
        yield f"toolConfig.toolChoice: {choice['tool'].get('name')!r} is not in tools"
