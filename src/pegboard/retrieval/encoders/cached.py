"""An encoder that remembers."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import numpy as np

from pegboard.model import Floats
from pegboard.seams import Embeddings, Encoder


def embedding_key(provider: str, model: str, text: str) -> str:
    """SHA-256 of provider, model and the embedded text, so that spaces never mix and no tool is merged (P16)."""
    parts = (part.encode("utf-8", "surrogatepass") for part in (provider, model, text))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


class CachedEncoder:
    """Encodes each text once, however many sessions ask (M4)."""

    def __init__(self, encoder: Encoder, store: Embeddings) -> None:
        self._encoder = encoder
        self._store = store
        self._one_at_a_time = asyncio.Lock()

    @property
    def provider(self) -> str:
        return self._encoder.provider

    @property
    def model(self) -> str:
        return self._encoder.model

    @property
    def dimensions(self) -> int:
        return self._encoder.dimensions

    async def encode(self, texts: Sequence[str]) -> Floats:
        keys = [embedding_key(self.provider, self.model, text) for text in texts]
        known = dict(await self._store.get(keys))
        if len(known) < len(set(keys)):
            async with self._one_at_a_time:
                known |= await self._encode_missing(dict(zip(keys, texts, strict=True)), known)
        return np.stack([known[key] for key in keys]) if keys else np.zeros((0, self.dimensions), np.float32)

    async def _encode_missing(self, texts: dict[str, str], known: dict[str, Floats]) -> dict[str, Floats]:
        """What somebody else encoded while we waited is taken from the store."""
        missing = [key for key in texts if key not in known]
        found = dict(await self._store.get(missing))
        missing = [key for key in missing if key not in found]
        if missing:
            vectors = await self._encoder.encode([texts[key] for key in missing])
            fresh = dict(zip(missing, vectors, strict=True))
            await self._store.put(fresh)
            found |= fresh
        return found
