"""One model of one provider of embeddings, as it is configured: where it is, what is sent, in which batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pegboard.retrieval.encoders.providers import Provider
from pegboard.seams import TokenCounter

CHARACTERS_PER_TOKEN = 24
"""Of a text at most this many characters a token of the window are counted (P6)."""
NOTHING = " "
"""What stands for a text without characters: some providers refuse it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """``deployment`` and ``api_version`` are Azure's. ``dimensions`` is what is asked for; None: as the model has it.

    ``timeout`` and ``total_timeout`` are seconds, of one request and of all that belong together.
    """

    provider: Provider
    base_url: str
    model: str
    deployment: str = ""
    api_version: str = ""
    dimensions: int | None = None
    window: int
    batch: int
    concurrency: int = 4
    timeout: float = 5.0
    total_timeout: float = 15.0

    @property
    def url(self) -> str:
        parameters = dict(self.provider.parameters or {}) | (
            {"api-version": self.api_version} if self.api_version else {}
        )
        path = self.provider.path.format(deployment=self.deployment)
        return f"{self.base_url.rstrip('/')}{path}" + (f"?{urlencode(parameters)}" if parameters else "")

    @property
    def space(self) -> tuple[str, str]:
        """Provider and model as they stand in the keys of vectors: the same name elsewhere may be another model."""
        place = self.base_url.rstrip("/")
        provider = self.provider.name if place == self.provider.base_url else f"{self.provider.name} at {place}"
        named = "/".join(filter(None, (self.deployment, self.model)))
        return provider, named if self.dimensions is None else f"{named}@{self.dimensions}"

    def headers(self, key: str | None) -> dict[str, str]:
        said = {"Content-Type": "application/json", "Accept": "application/json"}
        return said | ({self.provider.key_header: f"{self.provider.key_prefix}{key}"} if key else {})

    def body(self, texts: Sequence[str]) -> bytes:
        fields: dict[str, Any] = {"input": list(texts)}
        if self.model:
            fields["model"] = self.model
        if self.provider.encoding is not None:
            fields["encoding_format"] = self.provider.encoding
        if self.dimensions is not None:
            fields[self.provider.dimensions_field] = self.dimensions
        return json.dumps(fields, ensure_ascii=False).encode()

    def batches(self, texts: Sequence[str], counter: TokenCounter) -> Iterator[list[str]]:
        """The texts in their order, cut to the window, as many a request as the provider takes (P24)."""
        window = int(self.window * self.provider.counted)
        whole = int(self.provider.tokens * self.provider.counted)
        cut = [self.cut(text, window, counter) for text in texts]
        batch: list[str] = []
        tokens = 0
        for text, count in zip(cut, counter.count(cut), strict=True):
            if batch and (len(batch) == min(self.batch, self.provider.inputs) or tokens + count > whole):
                yield batch
                batch, tokens = [], 0
            batch.append(text)
            tokens += count
        if batch:
            yield batch

    def shorter(self, texts: Sequence[str], counter: TokenCounter) -> list[str] | None:
        """The texts for a second try where a provider that counts otherwise found one too long; None where it cannot be
        that."""
        half = int(self.window * self.provider.counted) // 2
        if self.provider.counted == 1.0 or all(count <= half for count in counter.count(texts)):
            return None
        return [self.cut(text, half, counter) for text in texts]

    @staticmethod
    def cut(text: str, window: int, counter: TokenCounter) -> str:
        return counter.cut(text[: window * CHARACTERS_PER_TOKEN], window) or NOTHING
