"""Options of the MCP registry: the snapshot that `find_server` searches."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class RegistrySettings(BaseModel):
    """``snapshot`` is the file that `pegboard registry sync` wrote; with one, MCP clients are offered `find_server`.
    Its answers take at most ``tokens``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: Path | None = None
    tokens: int = Field(default=1_500, ge=300, le=20_000)
