"""Tool definitions in the form of each API. Nothing here knows where tools come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Provider = Literal["openai", "responses", "anthropic", "gemini", "bedrock", "cohere", "mcp"]
"""The API whose requests carry the tools; `openai` is Chat Completions, `responses` is OpenAI Responses."""

ANYTHING: Mapping[str, Any] = {"type": "object", "properties": {}}
"""The schema for a tool without one: providers require a schema, and OpenAI requires `properties` in it."""
UNUSUAL = re.compile(r"[^A-Za-z0-9_-]")
"""Characters that Chat Completions rejects in a name."""
LONGEST_NAME = 64


def plain_name(name: str) -> str:
    """The name with every character replaced that some provider rejects.

    >>> plain_name("notes.create")
    'notes_create'
    """
    return UNUSUAL.sub("_", name)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, numbered if it is taken.

    >>> free_name("call_tool", {"call_tool", "call_tool_2"})
    'call_tool_3'
    """
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def wire_tool(provider: Provider, name: str, description: str, schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """One tool in the provider's form: an OpenAI or Cohere function, a Gemini declaration, a Bedrock
    specification, an Anthropic or MCP tool. Raises ValueError.

    >>> wire_tool("anthropic", "tide", "When the tide comes", None)["input_schema"]
    {'type': 'object', 'properties': {}}
    """
    return _format(provider).write({"name": name, "description": description}, dict(schema or ANYTHING))


def wire_tools(provider: Provider, tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The `tools` array of a request; Gemini puts all declarations into one group. Raises ValueError."""
    return _format(provider).array(tools)


def upstream_formats() -> tuple[str, ...]:
    """The `format` values of upstreams whose requests carry tools in a known form."""
    rows = TOOL_FORMATS.values()
    first = [each.upstream for each in rows if each.upstream]
    return tuple(dict.fromkeys([*first, *(name for each in rows for name in each.aliases)]))


Fields = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFormat:
    """How one API's requests carry tools.

    ``write`` makes a tool from its name and description and its schema; ``array`` makes the request's array of several.
    ``upstream`` is the `format` of the upstreams in the settings that accept such requests; empty if there are none.
    ``aliases`` are formats of upstreams that differ only in where the key goes.
    """

    write: Callable[[Fields, Fields], Fields]
    array: Callable[[Sequence[Fields]], list[Fields]] = list
    upstream: str = ""
    aliases: tuple[str, ...] = ()


def _chat(said: Fields, takes: Fields) -> Fields:
    return {"type": "function", "function": {**said, "parameters": takes}}


def _responses(said: Fields, takes: Fields) -> Fields:
    """Responses treats a schema as strict unless told otherwise."""
    return {"type": "function", **said, "parameters": takes, "strict": False}


def _specified(said: Fields, takes: Fields) -> Fields:
    return {"toolSpec": {**said, "inputSchema": {"json": takes}}}


def _under(key: str) -> Callable[[Fields, Fields], Fields]:
    return lambda said, takes: {**said, key: takes}


def _one_group(tools: Sequence[Fields]) -> list[Fields]:
    return [{"functionDeclarations": list(tools)}] if tools else []


TOOL_FORMATS: Mapping[str, ToolFormat] = {
    "openai": ToolFormat(write=_chat, upstream="openai", aliases=("azure",)),
    "responses": ToolFormat(write=_responses, upstream="openai"),
    "anthropic": ToolFormat(write=_under("input_schema"), upstream="anthropic"),
    "gemini": ToolFormat(write=_under("parametersJsonSchema"), array=_one_group, upstream="gemini"),
    "bedrock": ToolFormat(write=_specified, upstream="bedrock"),
    "cohere": ToolFormat(write=_chat, upstream="cohere"),
    "mcp": ToolFormat(write=_under("inputSchema")),
}
"""One row per format. `Provider` lists the same names for type checkers."""


def _format(provider: str) -> ToolFormat:
    found = TOOL_FORMATS.get(provider)
    if found is None:
        raise ValueError(f"Unknown tool format {provider!r}; known are {', '.join(map(repr, TOOL_FORMATS))}.")
    return found
