"""Options of the encoder: which model embeds texts, and what is used where it does not answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pegboard.settings.services import KeyVariable, ServiceUrl

ProviderName = Literal["local", "openai", "mistral", "azure", "compatible"]

NEEDED: dict[ProviderName, tuple[str, ...]] = {
    "azure": ("base_url", "deployment"),
    "compatible": ("base_url", "model"),
}
"""What nobody but the user can know."""
OF_AZURE = ("deployment", "api_version")


class EncoderSettings(BaseModel):
    """Where texts become vectors. ``local`` is the model in the package; the key of a service is read from the
    variable, never from here. What is None is as the provider documents it."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    provider: ProviderName = "local"
    model: str | None = Field(default=None, min_length=1)
    base_url: ServiceUrl | None = None
    api_key_env: KeyVariable | None = None
    dimensions: int | None = Field(default=None, ge=1, le=65536)
    window: int | None = Field(default=None, ge=16)
    """Tokens of a text that the model reads."""
    batch: int | None = Field(default=None, ge=1, le=2048)
    """Texts a request."""
    concurrency: int = Field(default=4, ge=1, le=64)
    """Requests at once for the texts of one catalog."""
    timeout: float = Field(default=5.0, gt=0)
    """Seconds that one request may take."""
    total_timeout: float = Field(default=15.0, gt=0)
    """Seconds that requests and their repetitions may take together."""
    rest: float = Field(default=5.0, ge=0)
    """Seconds that a service which failed is not asked again."""
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
