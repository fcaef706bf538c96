"""Options of OpenTelemetry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pegboard.errors import ConfigError
from pegboard.settings.secret_sources import SecretReader
from pegboard.settings.server_spec import Expander

Signal = Literal["traces", "metrics", "logs"]
SIGNALS: tuple[Signal, ...] = ("traces", "metrics", "logs")


def _collector(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("endpoint must begin with http:// or https://")
    if parts.username or parts.password or parts.query:
        raise ValueError("endpoint must not contain a key: put it into headers, as a reference to a secret")
    return url.rstrip("/")


Collector = Annotated[str, AfterValidator(_collector)]


class OtelSettings(BaseModel):
    """Where `serve` and `mcp` send OpenTelemetry. It is on if there is an ``endpoint``, if ``console`` prints to
    stderr, or if it is ``enabled``; the standard variables OTEL_* then say what is not said here.

    ``endpoint`` is the address of a collector without the path of a signal. Values of ``headers`` may contain
    variables and references to secrets. Of the traces that no client has begun, at most ``most_traces`` a second are
    recorded: 10, unless ``sample``, a share of them, or OTEL_TRACES_SAMPLER says which. ``content`` also records
    arguments and results of tool calls. Changes apply at the next start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    enabled: bool | None = None
    endpoint: Collector | None = None
    protocol: Literal["http/protobuf", "grpc"] | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    sample: float | None = Field(default=None, ge=0, le=1)
    most_traces: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    content: bool = False
    console: bool = False
    signals: tuple[Signal, ...] = SIGNALS
    service: str | None = Field(default=None, min_length=1)
    """The value of `service.name`; by default that of OTEL_SERVICE_NAME, or pegboard."""

    @property
    def is_on(self) -> bool:
        """
        >>> OtelSettings().is_on, OtelSettings(endpoint="http://localhost:4318").is_on
        (False, True)
        """
        return bool(self.endpoint or self.console) if self.enabled is None else self.enabled

    def headers_from(self, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
        """The headers with their variables and secrets. Raises ConfigError, and PegboardError if a secret cannot be
        read now."""
        expand = Expander("[otel] headers", environment, ".", SecretReader(environment))
        found = {name.lower(): expand(value) or "" for name, value in self.headers.items()}
        for name, value in found.items():
            if not value.isascii() or any(each in value for each in "\r\n\0"):
                raise ConfigError(f"The header {name!r} of [otel] is not a line of ASCII.", remedy="Correct its value.")
        return found
