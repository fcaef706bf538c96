"""Options of retrieval: the encoder that embeds texts, and the index that holds the vectors of tools."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator

from pegboard.settings.services import KeyVariable, ServiceUrl

ProviderName = Literal["local", "openai", "mistral", "azure", "compatible"]

NEEDED: dict[ProviderName, tuple[str, ...]] = {
    "azure": ("base_url", "deployment"),
    "compatible": ("base_url", "model"),
}
"""Options that have no default for a provider."""
OF_AZURE = ("deployment", "api_version")

IndexKind = Literal["exact", "compressed", "faiss", "chroma", "pgvector", "qdrant"]
LASTING: frozenset[IndexKind] = frozenset({"chroma", "pgvector", "qdrant"})
"""Indexes that outlive a process; the others are rebuilt from the embeddings in each process."""


class EncoderSettings(BaseModel):
    """The encoder. ``local`` is the packaged model. A service's key is read from an environment variable only. None
    means the value that the provider documents."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    provider: ProviderName = "local"
    model: str | None = Field(default=None, min_length=1)
    base_url: ServiceUrl | None = None
    api_key_env: KeyVariable | None = None
    dimensions: int | None = Field(default=None, ge=1, le=65536)
    window: int | None = Field(default=None, ge=16)
    """Most tokens of a text that the model reads."""
    batch: int | None = Field(default=None, ge=1, le=2048)
    """Most texts per request."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Concurrent requests for the texts of one catalog."""
    timeout: float = Field(default=5.0, gt=0)
    """Seconds that one request may take."""
    total_timeout: float = Field(default=15.0, gt=0)
    """Seconds that requests and their retries may take together."""
    rest: float = Field(default=5.0, ge=0)
    """Seconds that a failed service is not called."""
    fallback: Literal["local", "none"] = "local"
    deployment: str | None = Field(default=None, min_length=1, pattern=r"^[\w.-]+$")
    api_version: str | None = Field(default=None, pattern=r"^[\w.-]+$")

    @model_validator(mode="after")
    def _whole(self) -> EncoderSettings:
        missing = [name for name in NEEDED.get(self.provider, ()) if getattr(self, name) is None]
        if missing:
            raise ValueError(f"provider {self.provider!r} needs {' and '.join(missing)}")
        if self.provider == "local" and (given := sorted(self.model_fields_set - {"provider", "fallback"})):
            raise ValueError(f"provider 'local' has no use for {', '.join(given)}: name a provider")
        if self.provider != "azure" and (azures := sorted(self.model_fields_set & set(OF_AZURE))):
            raise ValueError(f"{', '.join(azures)}: only for provider 'azure'")
        return self


def _without_token(value: str) -> str:
    url = urlsplit(value)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError("url must begin with http:// or https://")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("url must not contain a token: name its environment variable in token_env")
    return value


ServerUrl = Annotated[str, AfterValidator(_without_token)]
Collection = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$")]


class ChromaSettings(BaseModel):
    """A Chroma server. Its token is read only from the environment variable ``token_env``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: ServerUrl = "http://127.0.0.1:8000"
    collection: Collection = "pegboard"
    """Prefix of the names of Pegboard's collections."""
    tenant: Annotated[str, Field(pattern=r"^[\w.-]+$")] = "default_tenant"
    database: Annotated[str, Field(pattern=r"^[\w.-]+$")] = "default_database"
    token_env: KeyVariable | None = None
    header: Literal["Authorization", "X-Chroma-Token"] = "Authorization"
    timeout: float = Field(default=2.0, gt=0)
    """Seconds that a search may take."""
    rest: float = Field(default=1.0, ge=0)
    """Seconds that a failed server is not called."""


class PgvectorSettings(BaseModel):
    """A PostgreSQL with the extension pgvector. ``url`` may contain variables and is secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: SecretStr | None = None
    """`postgresql://…`; None means the database of ``[state]``."""
    prefix: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]{0,62}$")] = "pegboard_vectors"
    """The schema."""
    timeout: float = Field(default=2.0, gt=0)
    """Seconds that a search may take."""
    rest: float = Field(default=1.0, ge=0)
    """Seconds that a failed server is not called."""


class QdrantSettings(BaseModel):
    """A Qdrant server. Its API key is read only from the environment variable ``token_env``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: ServerUrl = "http://127.0.0.1:6333"
    collection: Collection = "pegboard"
    """Prefix of the names of Pegboard's collections."""
    token_env: KeyVariable | None = None
    timeout: float = Field(default=2.0, gt=0)
    """Seconds that a search may take."""
    rest: float = Field(default=1.0, ge=0)
    """Seconds that a failed server is not called."""
