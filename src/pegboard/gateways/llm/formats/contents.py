"""Message contents in the form of OpenAI and Anthropic: a text, or a list of parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.gateways.llm.formats.json_reader import text_of
from pegboard.model import Part, PartKind

KINDS: Mapping[str, PartKind] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "input_audio": "audio",
    "audio": "audio",
}


def parts_of(content: object) -> tuple[Part, ...]:
    """The parts of a message's content (P2). Anything but text, image and sound counts as a file."""
    if isinstance(content, str):
        return (Part(text=content),)
    return tuple(
        Part(text=each) if isinstance(each, str) else _part(each)
        for each in (content if isinstance(content, list) else [])
        if isinstance(each, str | dict)
    )


def _part(part: Mapping[str, Any]) -> Part:
    kind = KINDS.get(text_of(part.get("type")), "file")
    return Part(kind=kind, text=text_of(part.get("text")) if kind == "text" else "")


def result_of(content: object, tool: str | None = None) -> tuple[Part, ...]:
    """A tool's result as message parts."""
    return tuple(Part(kind="tool_result", text=part.text, tool=tool) for part in parts_of(content))
