"""The index for the vectors of a board."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from pegboard.retrieval.index.faiss import FaissIndex
from pegboard.seams import (
    Clock,
    Encoder,
    VectorIndex,
)
from pegboard.settings import Settings
from pegboard.settings.services import key_in
from pegboard.settings.vectors import ChromaSettings
from pegboard.stores.breaker import Breaker as StoreBreaker

IndexOf = Callable[[str], VectorIndex | None]


def indexes(settings: Settings, encoder: Encoder | None, clock: Clock) -> IndexOf:
    """For each board an index of its own for the vectors of one encoder; None for the exact one, or without encoder.

    On a server each board has a collection for each space of vectors: two boards may describe a tool in two ways. The
    collection is named now, as what an encoder knows of itself before its first answer is the same each time.
    """
    if encoder is None or settings.index == "exact":
        return lambda board: None
    if settings.index == "faiss":
        return lambda board: FaissIndex(encoder.dimensions)
    space = hashlib.sha256(f"{encoder.provider}\0{encoder.model}\0{encoder.dimensions}".encode()).hexdigest()[:12]
    return lambda board: collection(settings.chroma, (board, space), clock)


def collection(chosen: ChromaSettings, names: Sequence[str], clock: Clock) -> VectorIndex:
    """One on the configured Chroma server. Raises ConfigError where its token is missing."""
    from pegboard.retrieval.index.chroma import ChromaIndex  # an HTTP client that few need

    breaker = StoreBreaker(clock, rest=chosen.rest, meanwhile="tools are ranked by words alone")
    return ChromaIndex(
        chosen.url,
        ".".join(filter(None, (chosen.collection, *names))),
        tenant=chosen.tenant,
        database=chosen.database,
        headers=_token(chosen),
        timeout=chosen.timeout,
        guard=breaker.call,
    )


def _token(chosen: ChromaSettings) -> dict[str, str]:
    """The header with the token from the variable that the section names. Raises ConfigError where there is none."""
    if chosen.token_env is None:
        return {}
    token = key_in(chosen.token_env, "the Chroma server")
    return {chosen.header: f"Bearer {token}" if chosen.header == "Authorization" else token}
