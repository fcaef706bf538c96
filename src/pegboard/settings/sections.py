"""The small sections of the configuration: rules, clients, toolsets, summaries and access tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pegboard.settings.key_rotation import KeyHash, RotatedKey
from pegboard.settings.services import KeyVariable, ServiceUrl

Exposure = Literal["eager", "static", "dynamic", "native", "route"]
ToolKey = Annotated[str, Field(pattern=r"^.+/.+$")]
LEAST_NAME = 24
"""Fewest characters of a tool's name that leave room for words and for a hash that makes it unique."""


class RuleSettings(BaseModel):
    """Who may use the tools that match ``tools`` (a pattern on ``server/name``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: str
    requires: tuple[str, ...] = ()
    scope: str | None = None


class ClientSettings(BaseModel):
    """Capabilities of a kind of client that differ from the table of clients. ``matches`` are patterns on the name that
    the client sends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    matches: tuple[str, ...] = ()
    list_changed: bool | None = None
    native_search: bool | None = None
    always_load: str | None = Field(None, min_length=1)
    most_tools: int | None = Field(None, ge=1)
    longest_name: int | None = Field(None, ge=LEAST_NAME)
    exposure: Exposure | None = None


class ToolsetSettings(BaseModel):
    """A named selection of the board's tools. Patterns match ``server/name`` or the name alone; tables are keyed by
    ``server/name``. Values of ``preset`` may contain variables and are secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    rename: dict[ToolKey, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    describe: dict[ToolKey, str] = Field(default_factory=dict)
    preset: dict[ToolKey, dict[str, Any]] = Field(default_factory=dict, repr=False)
    exposure: Exposure | None = None
    always_available: tuple[str, ...] | None = None
    scope: str | None = None
    """The scope that a token needs for this toolset, if tokens are required."""


class SummariesSettings(BaseModel):
    """The summary file, and the LLM that writes summaries. Its key is read from an environment variable only."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    file: Path | None = None
    base_url: ServiceUrl | None = None
    model: str | None = None
    api_key_env: KeyVariable | None = None
    batch: int = Field(default=10, ge=1, le=50)
    concurrency: int = Field(default=4, ge=1, le=64)
    timeout: float = Field(default=60.0, gt=0)

    @model_validator(mode="after")
    def _whole(self) -> SummariesSettings:
        if (self.base_url is None) != (self.model is None):
            raise ValueError("base_url and model belong together")
        return self


class AccessSettings(RotatedKey):
    """A bearer token, given by its hash or by the variable that holds it, and the rights of its bearer.

    ``tools`` are patterns on ``server/name`` or the name alone; ``scopes`` are those that `rules`, `grants` and
    toolsets require. Without ``tools`` and without configured grants, the token permits all tools. ``tenant``
    is its bearer's, in the audit log and in limits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    hash: KeyHash | None = None
    env: KeyVariable | None = None
    scopes: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = Field(default=None)
    tenant: str = ""

    @model_validator(mode="after")
    def _one_token(self) -> Self:
        if (self.hash is None) == (self.env is None):
            raise ValueError("needs either hash or env")
        return self
