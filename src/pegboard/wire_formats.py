"""A tool as each kind of request carries it. Nothing here knows where tools come from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

Provider = Literal["openai", "responses", "anthropic", "gemini", "mcp"]
"""Whose requests carry the tools; OpenAI's are those of Chat Completions, or of Responses."""

ANYTHING: Mapping[str, Any] = {"type": "object", "properties": {}}
"""The schema of a tool that has none: providers insist on one, and OpenAI on its properties."""
UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")
"""What Chat Completions refuse in a name."""
LONGEST_NAME = 64


def plain_name(name: str) -> str:
    """The name in the characters that every provider takes.

    >>> plain_name("notes.create")
    'notes_create'
    """
    return UNUSUAL.sub("_", name)


def wire_tool(provider: Provider, name: str, description: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """One tool: a function of OpenAI's, a declaration of Gemini's, a tool of Anthropic's or MCP's. Raises ValueError.

    >>> wire_tool("anthropic", "tide", "When the tide comes", None)["input_schema"]
    {'type': 'object', 'properties': {}}
    """
    said, takes = {"name": name, "description": description}, dict(schema or ANYTHING)
    match provider:
        case "openai":
            return {"type": "function", "function": {**said, "parameters": takes}}
        case "responses":  # which would take a schema for a strict one by itself
            return {"type": "function", **said, "parameters": takes, "strict": False}
        case "anthropic":
            return {**said, "input_schema": takes}
        case "gemini":
            return {**said, "parametersJsonSchema": takes}
        case "mcp":
            return {**said, "inputSchema": takes}
    raise ValueError(_unknown(provider))


def wire_tools(provider: Provider, tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Tools as the array that a request has them in: Gemini's stand together in one group. Raises ValueError."""
    if provider not in get_args(Provider):
        raise ValueError(_unknown(provider))
    return [{"functionDeclarations": list(tools)}] if provider == "gemini" and tools else list(tools)


def _unknown(provider: str) -> str:
    return f"Tools have no format {provider!r}; they have {', '.join(map(repr, get_args(Provider)))}."
