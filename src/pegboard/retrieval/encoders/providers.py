"""The differences between providers of embeddings, as data. All implement OpenAI's `/embeddings`, more or less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How requests to a provider look, and its limits.

    ``inputs`` and ``tokens`` limit one request, ``window`` one text; ``batch`` is the default number of texts per
    request: a long answer is parsed in one step and blocks everything else meanwhile. ``counted`` is the share of a
    limit that is used: below 1 if the provider's tokenizer is not the one we count with.
    """

    name: str
    base_url: str | None = None
    path: str = "/embeddings"
    parameters: Mapping[str, str] | None = None
    key_variable: str | None = None
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    model: str | None = None
    inputs: int
    batch: int
    tokens: int
    window: int
    counted: float
    encoding: Literal["float", "base64"] | None
    dimensions_field: str = "dimensions"


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            name="openai",
            base_url="https://api.openai.com/v1",
            key_variable="OPENAI_API_KEY",
            model="text-embedding-3-small",
            inputs=2048,
            batch=256,
            tokens=300_000,
            window=8191,
            counted=1.0,
            encoding="base64",
        ),
        Provider(
            name="azure",
            path="/openai/deployments/{deployment}/embeddings",
            parameters={"api-version": "2024-10-21"},
            key_variable="AZURE_OPENAI_API_KEY",
            key_header="api-key",
            key_prefix="",
            inputs=2048,
            batch=256,
            tokens=300_000,
            window=8191,
            counted=1.0,
            encoding="base64",
        ),
        Provider(
            name="mistral",
            base_url="https://api.mistral.ai/v1",
            key_variable="MISTRAL_API_KEY",
            model="mistral-embed",
            inputs=512,
            batch=64,
            tokens=16_000,
            window=8192,
            counted=0.75,
            encoding="float",
            dimensions_field="output_dimension",
        ),
        # TEI accepts 32 texts per request by default, and many models read at most 512 tokens.
        Provider(
            name="compatible",
            inputs=2048,
            batch=32,
            tokens=300_000,
            window=512,
            counted=0.75,
            encoding=None,
        ),
    )
}
