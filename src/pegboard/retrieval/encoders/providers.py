"""What providers of embeddings differ in, as data. All of them speak OpenAI's `/embeddings`, more or less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """How a provider is asked, and what it takes.

    ``inputs`` and ``tokens`` are its limits for one request, ``window`` for one text; ``batch`` is how many texts are
    sent where nobody says: a long answer is read in one go, and holds up everything else meanwhile. ``counted`` is the
    share of a limit that is used up: below 1 where the provider's tokens are not those that we count.
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
        # TEI takes 32 texts a request unless it is told otherwise, and many models read no more than 512 tokens.
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
