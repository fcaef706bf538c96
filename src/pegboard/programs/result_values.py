"""A tool's result as a value of a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pegboard.model import JsonObject, Tool

LONGEST = 8_000_000
"""Most characters of a result that a program is given."""
NOT_HERE = "It asks its user, or answers later: call it by itself, not from a program."


class CallFailed(Exception):  # noqa: N818
    """What a program sees as RuntimeError: its text is for the model that wrote the program."""


def value_of(tool: Tool, result: JsonObject) -> Any:
    """The structured content of a tool with an output schema, else the texts: JSON objects and arrays parsed, other
    texts as they are, one value or a list of several. What is no text becomes a line that says what it is.

    Raises CallFailed for an error, for a result that is not complete, and for one that is too long.
    """
    if "content" not in result or result.get("resultType", "complete") != "complete":
        raise CallFailed(NOT_HERE)
    blocks = result.get("content") or []
    texts = [text_of(each) for each in blocks if isinstance(each, Mapping)]
    if result.get("isError", False):
        raise CallFailed("\n".join(texts)[:2_000] or "the tool failed without saying why")
    if sum(map(len, texts)) > LONGEST:
        raise CallFailed(f"its result is longer than {LONGEST} characters: ask for less")
    structured = result.get("structuredContent")
    if tool.output_schema and structured is not None:
        return structured
    values = [_parsed(text) for text in texts]
    return values[0] if len(values) == 1 else values or None


def text_of(block: Mapping[str, Any]) -> str:
    """
    >>> text_of({"type": "image", "mimeType": "image/png", "data": "aGk="})
    '[image, image/png, 4 characters of base64]'
    """
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource" and isinstance(block.get("resource"), Mapping) and "text" in block["resource"]:
        return str(block["resource"]["text"])
    if kind == "resource_link":
        return str(block.get("uri", ""))
    return f"[{kind}, {block.get('mimeType', 'unknown type')}, {len(str(block.get('data', '')))} characters of base64]"


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
