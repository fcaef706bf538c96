"""What a model is sent while a task is played: counted, and kept as a prompt cache would see it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pegboard.catalog import BpeCounter, compact_json

Body = Mapping[str, Any]
COUNTER = BpeCounter()


@lru_cache(maxsize=4096)
def _block(text: str) -> tuple[int, int]:
    """A number for what a text says, and its tokens. All plays send the same definitions."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big"), COUNTER.count([text])[0]


@dataclass(slots=True)
class Sent:
    """The requests of one play.

    ``blocks`` are distinct: a number for what each says, and its tokens. ``requests`` name them by their places, tools
    first, with how many are tools. ``aside`` are tokens of requests to a selecting model.
    """

    blocks: dict[str, tuple[int, int]] = field(default_factory=dict)
    requests: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    aside: list[int] = field(default_factory=list)
    _places: dict[str, int] = field(default_factory=dict)

    def add(self, body: Body, inline: Sequence[str] = ()) -> None:
        """A request in OpenAI's form. Functions named ``inline`` stand in a message already, as a search's result."""
        tools = [compact_json(tool) for tool in body.get("tools", ()) if tool["function"]["name"] not in inline]
        texts = [*tools, *(compact_json(message) for message in body["messages"])]
        for text in dict.fromkeys(texts):
            if text not in self.blocks:
                self._places[text] = len(self.blocks)
                self.blocks[text] = _block(text)
        self.requests.append((len(tools), tuple(self._places[text] for text in texts)))

    def add_aside(self, text: str) -> None:
        """A request to a model that selects tools, which answers in a few words."""
        self.aside.append(COUNTER.count([text])[0])

    @property
    def tokens(self) -> int:
        """Of all requests, those aside included."""
        sizes = [tokens for _, tokens in self.blocks.values()]
        return sum(sizes[place] for _, places in self.requests for place in places) + sum(self.aside)

    def kept(self) -> dict[str, Any]:
        """As JSON holds it; `play.Played` has it."""
        return {"blocks": list(self.blocks.values()), "sent": self.requests, "aside": self.aside}
