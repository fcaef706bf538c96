"""The encoder that the settings name."""

from __future__ import annotations

from pegboard.breaker import Breaker
from pegboard.catalog import BpeCounter
from pegboard.errors import EncoderError
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.encoders.providers import PROVIDERS
from pegboard.retrieval.encoders.service import Service
from pegboard.seams import (
    Clock,
    Encoder,
)
from pegboard.settings import Settings
from pegboard.settings.encoder import EncoderSettings
from pegboard.settings.services import key_in


def in_process(settings: Settings) -> OnnxEncoder:
    return OnnxEncoder(threads=settings.encoder_threads)


def configured_encoder(settings: Settings, clock: Clock) -> Encoder:
    """The encoder that the settings name. Nothing is asked before it is used. Raises ConfigError for a missing key."""
    chosen = settings.encoder
    if chosen.provider == "local":
        return in_process(settings)
    from pegboard.retrieval.encoders.remote import RemoteEncoder  # an HTTP client that few need

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
    """What is configured, with what the provider documents where nothing is."""
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
