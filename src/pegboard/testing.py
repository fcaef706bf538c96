"""Public fakes, the same that Pegboard's own tests use. Deterministic, in memory, no network."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from pegboard.errors import EncoderError
from pegboard.model import Floats, JsonObject, Tool, ToolId
from pegboard.retrieval.words import terms


class FakeClock:
    """A clock that moves only when `advance` is called."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


class FakeEncoder:
    """Encodes texts as bags of hashed words, so that texts that share words are close. Records what it encoded."""

    provider = "fake"
    model = "bag-of-words"

    def __init__(self, dimensions: int = 256, *, broken: bool = False) -> None:
        self.dimensions = dimensions
        self.broken = broken
        self.encoded: list[str] = []

    async def encode(self, texts: Sequence[str]) -> Floats:
        if self.broken:
            raise EncoderError("The fake encoder is broken.")
        self.encoded.extend(texts)
        return np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dimensions), np.float32)

    def _vector(self, text: str) -> Floats:
        vector = np.full(self.dimensions, 1e-6, np.float32)
        for term in terms(text):
            vector[int.from_bytes(hashlib.sha256(term.encode()).digest()[:4], "big") % self.dimensions] += 1
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


def fake_tool(name: str, description: str = "", *, server: str = "fake", schema: JsonObject | None = None) -> Tool:
    """A tool with the definition that a server would list."""
    schema = {"type": "object"} if schema is None else schema
    return Tool(
        id=ToolId(server, name),
        description=description,
        input_schema=schema,
        definition={"name": name, "description": description, "inputSchema": schema},
    )
