"""Poisons, and how they get into a definition."""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from pegboard.catalog.ingest.mcp import tool_from_mcp
from pegboard.model import Tool

Part = Literal["fit", "held_out"]
PARTS: tuple[Part, ...] = ("fit", "held_out")
LOOK_ALIKES = str.maketrans("aeopcxiAEOPCX", "аеорсхіАЕОРСХ")

HIDDEN: Mapping[str, Callable[[str], str]] = {
    "": lambda text: text,
    "tags": lambda text: "".join(chr(0xE0000 + ord(each)) for each in text),
    "zero-width": lambda text: "\u200b".join(text),
    "selectors": lambda text: "x" + "".join(chr(0xE0100 + ord(each) - 16) for each in text),
    "bidi": lambda text: f"\u202e{text[::-1]}\u202c",
    "look-alikes": lambda text: text.translate(LOOK_ALIKES),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "padding": lambda text: "\n" * 60 + text,
}
"""Ways to keep a text from being seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """``place`` is where in a definition it is planted: description, parameter, enum or default."""

    kind: str
    text: str
    place: str = "description"
    hide: str = ""

    def planted(self, carrier: Tool) -> Tool:
        """The tool with the poison in it. Raises ValueError for a place there is not."""
        definition = dict(carrier.definition) | {"name": carrier.name}
        said = HIDDEN[self.hide](self.text)
        if self.place == "description":
            definition["description"] = f"{carrier.description} {said}".lstrip()
        else:
            schema = dict(carrier.input_schema or {"type": "object"})
            schema["properties"] = {**schema.get("properties", {}), "note": _parameter(self.place, said)}
            definition["inputSchema"] = schema
        return tool_from_mcp(carrier.server, definition)


def _parameter(place: str, said: str) -> dict[str, Any]:
    match place:
        case "parameter":
            return {"type": "string", "description": said}
        case "enum":
            return {"type": "string", "enum": ["", said]}
        case "default":
            return {"type": "string", "default": said}
    raise ValueError(f"There is no place {place!r} in a definition.")


def poisons(part: Part) -> tuple[Poison, ...]:
    """Those that rules may be fitted to, or those that show what a fit is worth."""
    text = files("pegboard_bench.scan").joinpath("poisons.toml").read_text("utf-8")
    return tuple(Poison(**each) for each in tomllib.loads(text)[part])
