"""Token counts, exact and offline."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import toktok

from pegboard.model import JsonObject, Tool

Encoding = Literal["cl100k_base", "o200k_base"]


@dataclass(frozen=True, slots=True)
class BpeCounter:
    """Counts as OpenAI's tokenizers do. Other vendors' counts differ by some percent; none publishes a local one.

    >>> BpeCounter().count(["hello world"])
    [2]
    """

    encoding: Encoding = "cl100k_base"

    def count(self, texts: Sequence[str]) -> list[int]:
        _load(self.encoding)
        return list(toktok.batch_count([_encodable(text) for text in texts], self.encoding))

    def cut(self, text: str, limit: int) -> str:
        _load(self.encoding)
        kept, _ = toktok.truncate(_encodable(text), limit, self.encoding)
        return str(kept)


_LOADED: set[str] = set()
_LOADING = threading.Lock()


def _load(encoding: str) -> None:
    """Load an encoding once: threads that find it missing at the same time would each load it, for 0.2 s."""
    if encoding in _LOADED:
        return
    with _LOADING:
        toktok.batch_count([""], encoding)
        _LOADED.add(encoding)


def _encodable(text: str) -> str:
    """The text with lone surrogates, which JSON allows but UTF-8 does not, replaced by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def compact_json(value: object) -> str:
    """JSON without blanks and without escaped characters: the form in which definitions are counted."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def canonical(tool: Tool) -> JsonObject:
    """The part of a definition that every wire format sends; token counts refer to it unless stated otherwise."""
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema or {"type": "object"}}


def canonical_text(tool: Tool) -> str:
    return compact_json(canonical(tool))
