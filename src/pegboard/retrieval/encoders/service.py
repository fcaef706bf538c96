"""One configured model of an embeddings provider: its address, requests and batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pegboard.protocols import TokenCounter
from pegboard.retrieval.encoders.providers import Provider

CHARACTERS_PER_TOKEN = 24
"""At most this many characters per token of the window are counted (P6)."""
NOTHING = " "
"""Sent instead of an empty text, which some providers reject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """``deployment`` and ``api_version`` are for Azure. ``dimensions`` are requested; None means the model's default.

    ``timeout`` and ``total_timeout`` are seconds for one request and for a whole call.
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
        """Provider and model for the keys of vectors; the address is included, since a name may mean another model
        there."""
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
        """The texts in order, cut to the window, in batches that the provider accepts (P24)."""
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
        """Shorter texts for a retry, if the provider counts tokens differently and may have found one too long; else
        None."""
        half = int(self.window * self.provider.counted) // 2
        if self.provider.counted == 1.0 or all(count <= half for count in counter.count(texts)):
            return None
        return [self.cut(text, half, counter) for text in texts]

    @staticmethod
    def cut(text: str, window: int, counter: TokenCounter) -> str:
        return counter.cut(text[: window * CHARACTERS_PER_TOKEN], window) or NOTHING
