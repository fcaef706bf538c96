"""Tool calls of chat completions, in the pieces that they come in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.gateways.llm.reading import object_of, text_of

GROWING = ("arguments", "input")


@dataclass(slots=True)
class Call:
    """A tool call, as far as it has come. ``place`` is its index at the client, once it has one there."""

    whole: dict[str, Any] = field(default_factory=dict)
    place: int | None = None

    @property
    def name(self) -> str:
        return text_of((object_of(self.whole.get("function")) or object_of(self.whole.get("custom"))).get("name"))

    def add(self, piece: Mapping[str, Any]) -> None:
        """A further piece: arguments grow, everything else is said once."""
        for name, value in piece.items():
            if isinstance(value, Mapping):
                self.whole[name] = _grown(object_of(self.whole.get(name)), value)
            elif name != "index" and (value is not None or name not in self.whole):
                self.whole[name] = value


def _grown(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    grown = dict(before)
    for name, value in more.items():
        if name in GROWING and isinstance(grown.get(name), str) and isinstance(value, str):
            grown[name] += value
        elif value is not None or name not in grown:
            grown[name] = value
    return grown
