"""An encoder that caches embeddings in a store."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

import numpy as np

from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.protocols import BulkEncoder, ClauseEncoder, Embeddings, Encoder
from pegboard.retrieval.intents import Span, with_clauses

AT_ONCE = 64
"""Texts per call for an encoder that does not state a number, so that other requests get their turn between calls."""


def texts_at_once(encoder: Encoder) -> int:
    """How many texts an encoder gets in one call."""
    return encoder.at_once if isinstance(encoder, BulkEncoder) else AT_ONCE


def embedding_key(provider: str, model: str, text: str) -> str:
    """SHA-256 of provider, model and text, so that embedding spaces never mix and no tools are merged (P16)."""
    parts = (part.encode("utf-8", "surrogatepass") for part in (provider, model, text))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _places(text: str, spans: Sequence[Span]) -> list[str]:
    """Key texts for the clauses of a text; ordinary texts contain no NUL, so the keys cannot collide."""
    return [f"{start}:{end}\0{text}" for start, end in spans]


class CachedEncoder:
    """Encodes each text once, however many sessions request it (M4)."""

    def __init__(self, encoder: Encoder, store: Embeddings) -> None:
        self._encoder = encoder
        self._store = store
        self._underway: dict[str, asyncio.Task[dict[str, Floats]]] = {}

    @property
    def provider(self) -> str:
        return self._encoder.provider

    @property
    def model(self) -> str:
        return self._encoder.model

    @property
    def dimensions(self) -> int:
        return self._encoder.dimensions

    @property
    def at_once(self) -> int:
        return texts_at_once(self._encoder)

    async def encode(self, texts: Sequence[str]) -> Floats:
        keys = [embedding_key(self.provider, self.model, text) for text in texts]
        known = dict(await self._store.get(keys))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            known |= await self._made(missing)
        return _stacked([known[key] for key in keys]) if keys else np.zeros((0, self.dimensions), np.float32)

    async def encode_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        """Vectors of the text, then of its part in each span: shape (1 + len(spans), dimensions).

        An encoder that cannot encode clauses within their text encodes them as separate texts.
        """
        if not isinstance(self._encoder, ClauseEncoder):
            return await self.encode(with_clauses(text, spans))
        keys = [embedding_key(self.provider, self.model, part) for part in (text, *_places(text, spans))]
        known = await self._store.get(keys)
        if len(known) < len(set(keys)):
            vectors = await self._encoder.encode_clauses(text, spans)
            known = dict(zip(keys, vectors, strict=True))
            await self._store.put(known)
        return _stacked([known[key] for key in keys])

    async def _made(self, texts: dict[str, str]) -> dict[str, Floats]:
        self._start({key: text for key, text in texts.items() if key not in self._underway})
        made: dict[str, Floats] = {}
        for found in await asyncio.gather(*(asyncio.shield(task) for task in {self._underway[key] for key in texts})):
            made |= found
        return made

    def _start(self, texts: dict[str, str]) -> None:
        """Look up or encode these; concurrent requests for one of them wait only for this task (P25)."""
        if texts:
            task = asyncio.create_task(self._vectors(texts))
            self._underway |= dict.fromkeys(texts, task)
            task.add_done_callback(lambda _: self._forget(texts))

    def _forget(self, texts: dict[str, str]) -> None:
        for key in texts:
            del self._underway[key]

    async def _vectors(self, texts: dict[str, str]) -> dict[str, Floats]:
        known = dict(await self._store.get(list(texts)))
        missing = [key for key in texts if key not in known]
        if missing:
            vectors = await self._encoder.encode([texts[key] for key in missing])
            fresh = dict(zip(missing, vectors, strict=True))
            await self._store.put(fresh)
            known |= fresh
        return known


def _stacked(vectors: Sequence[Floats]) -> Floats:
    """The vectors as rows. Raises EncoderError if their widths differ: another model now has the same name."""
    widths = {len(vector) for vector in vectors}
    if len(widths) > 1:
        raise EncoderError(
            f"The vectors of one model have {' and '.join(map(str, sorted(widths)))} numbers.",
            remedy="Another model answers under the same name: give it a different name, or empty cache_dir.",
        )
    return np.stack(vectors)
