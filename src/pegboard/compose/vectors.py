"""The encoder and the vector index that the settings name."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence

from pegboard.catalog import BpeCounter
from pegboard.circuit_breaker import Breaker
from pegboard.errors import ConfigError, EncoderError, StoreError
from pegboard.events import RecallMeasured
from pegboard.extras import required
from pegboard.protocols import Clock, Encoder, EventSink, VectorIndex
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.encoders.providers import PROVIDERS
from pegboard.retrieval.encoders.service import Service
from pegboard.retrieval.index.bit_index import CompressedIndex
from pegboard.retrieval.index.faiss import FaissIndex
from pegboard.retrieval.index.pgvector import PgvectorDatabase, PgvectorIndex
from pegboard.retrieval.index.qdrant import FILLING, QdrantIndex
from pegboard.retrieval.index.recall_samples import RecallSample, RecallSamples
from pegboard.settings import Settings
from pegboard.settings.retrieval import ChromaSettings, EncoderSettings, QdrantSettings
from pegboard.settings.services import key_in

IndexOf = Callable[[str], VectorIndex | None]
CHROMA_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]")
QDRANT_NAME = re.compile(r'[^<>:"/\\|?*\0\x1f]{1,255}')
"""What the servers accept as the name of a collection."""


def in_process(settings: Settings) -> OnnxEncoder:
    return OnnxEncoder(threads=settings.encoder_threads)


def configured_encoder(settings: Settings, clock: Clock) -> Encoder:
    """The encoder that the settings name; it connects when first used. Raises ConfigError for a missing key."""
    chosen = settings.encoder
    if chosen.provider == "local":
        return in_process(settings)
    required("httpx2", "remote")
    from pegboard.retrieval.encoders.remote import RemoteEncoder  # imports an HTTP client that few need

    service = embedding_service(chosen)
    variable = chosen.api_key_env or service.provider.key_variable
    meanwhile = "the encoder in process ranks" if chosen.fallback == "local" else "tools are ranked by words alone"
    return RemoteEncoder(
        service,
        key=None if variable is None else key_in(variable, "the embeddings service"),
        counter=BpeCounter(),
        breaker=Breaker(
            clock, EncoderError, name=f"The encoder {service.space[1]!r}", rest=chosen.rest, meanwhile=meanwhile
        ),
    )


def embedding_service(chosen: EncoderSettings) -> Service:
    """The configured service; options that are not set take the provider's documented values."""
    provider = PROVIDERS[chosen.provider]
    return Service(
        provider=provider,
        base_url=chosen.base_url or provider.base_url or "",
        model=chosen.model or provider.model or "",
        deployment=chosen.deployment or "",
        api_version=chosen.api_version or "",
        dimensions=chosen.dimensions,
        window=chosen.window or provider.window,
        batch=min(chosen.batch or provider.batch, provider.inputs),
        concurrency=chosen.concurrency,
        timeout=chosen.timeout,
        total_timeout=chosen.total_timeout,
    )


def indexes(settings: Settings, encoder: Encoder | None, clock: Clock, events: EventSink) -> IndexOf:
    """A function that makes the index of a board, for the vectors of one encoder; it returns None for the exact index,
    or without an encoder. What an index finds is measured, as `index_recall` says.
    """
    if encoder is None or settings.index == "exact":
        return lambda board: None
    make = _index_maker(settings, encoder, clock)
    if not settings.index_recall:
        return make

    def report(sample: RecallSample) -> None:
        events.emit(
            RecallMeasured(
                at=clock.time(),
                index=settings.index,
                wanted=sample.wanted,
                found=sample.found,
                compared=sample.compared,
            )
        )

    return lambda board: RecallSamples(make(board), clock, report, seconds=settings.index_recall)


def _index_maker(settings: Settings, encoder: Encoder, clock: Clock) -> Callable[[str], VectorIndex]:
    """Makes the index of a board.

    On a server, each board has a collection or table per vector space, because two boards may describe a tool
    differently. Its name is fixed now, because an encoder's dimensions may change with its first answer.
    """
    if settings.index == "compressed":
        return lambda board: CompressedIndex(encoder.dimensions)
    if settings.index == "faiss":
        return lambda board: FaissIndex(encoder.dimensions)
    space = hashlib.sha256(f"{encoder.provider}\0{encoder.model}\0{encoder.dimensions}".encode()).hexdigest()[:12]
    if settings.index == "pgvector":
        tables = _tables(settings, clock)
        return lambda board: PgvectorIndex(tables, (board, space))
    if settings.index == "qdrant":
        return _points(settings.qdrant, space, clock)
    return lambda board: collection(settings.chroma, (board, space), clock)


def _tables(settings: Settings, clock: Clock) -> PgvectorDatabase:
    """The database of all boards' tables. Raises ConfigError if no address is configured."""
    chosen = settings.pgvector
    secret = chosen.url or settings.state.url
    url = "" if secret is None else secret.get_secret_value()
    if not url.startswith(("postgres://", "postgresql://")):
        raise ConfigError("The index 'pgvector' needs the address of PostgreSQL.", remedy="Set url in [pgvector].")
    return PgvectorDatabase(url, schema=chosen.prefix, timeout=chosen.timeout, guard=_guard(clock, chosen.rest).call)


def _points(chosen: QdrantSettings, space: str, clock: Clock) -> Callable[[str], VectorIndex]:
    """Makes the collection of a board. Raises ConfigError if the API key is missing."""
    key = None if chosen.token_env is None else key_in(chosen.token_env, "the Qdrant server")
    client = required("qdrant_client", "qdrant").QdrantClient(
        url=chosen.url,
        port=None,
        api_key=key,
        timeout=math.ceil(chosen.timeout * FILLING),
        check_compatibility=False,
        trust_env=False,
    )
    return lambda board: QdrantIndex(
        client,
        _named(QDRANT_NAME, chosen.collection, board, space),
        place=chosen.url,
        timeout=chosen.timeout,
        guard=_guard(clock, chosen.rest).call,
    )


def _guard(clock: Clock, rest: float) -> Breaker[StoreError]:
    return Breaker(clock, StoreError, name="The store", rest=rest, meanwhile="tools are ranked by words alone")


def _named(accepted: re.Pattern[str], prefix: str, *names: str) -> str:
    """A collection's name, with a hash in the place of names that the server does not accept: after `_`, with which no
    name of a toolset begins.

    >>> _named(CHROMA_NAME, "pegboard", "tools", "space"), _named(CHROMA_NAME, "pegboard", "tools@user", "space")
    ('pegboard.tools.space', 'pegboard._92602aa51e5919f99fa81738')
    """
    name = ".".join(filter(None, (prefix, *names)))
    if accepted.fullmatch(name):
        return name
    return f"{prefix}._{hashlib.sha256(chr(0).join(names).encode()).hexdigest()[:24]}"


def collection(chosen: ChromaSettings, names: Sequence[str], clock: Clock) -> VectorIndex:
    """A collection on the configured Chroma server. Raises ConfigError if its token is missing."""
    required("httpx2", "remote")
    from pegboard.retrieval.index.chroma import ChromaIndex  # imports an HTTP client that few need

    return ChromaIndex(
        chosen.url,
        _named(CHROMA_NAME, chosen.collection, *names),
        tenant=chosen.tenant,
        database=chosen.database,
        headers=_token(chosen),
        timeout=chosen.timeout,
        guard=_guard(clock, chosen.rest).call,
    )


def _token(chosen: ChromaSettings) -> dict[str, str]:
    """The header with the token, read from the configured variable. Raises ConfigError if the variable is not set."""
    if chosen.token_env is None:
        return {}
    token = key_in(chosen.token_env, "the Chroma server")
    return {chosen.header: f"Bearer {token}" if chosen.header == "Authorization" else token}
