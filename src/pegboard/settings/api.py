"""Options of the HTTP API of `pegboard serve`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ApiSettings(BaseModel):
    """The HTTP API: ``/v1/route``, ``/v1/search`` and ``/v1/outcome``.

    ``serves`` turns it on. A request has at most ``most_body`` bytes and ``most_tools`` tools of its own; it waits at
    most ``patience`` seconds for new ones to be embedded, and ranks them by words until they are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    serves: bool = True
    most_body: int = Field(default=8_000_000, ge=1_000)
    most_tools: int = Field(default=10_000, ge=1)
    patience: float = Field(default=1.0, ge=0)
