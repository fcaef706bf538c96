"""Options of the snapshot of an MCP registry."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class RegistrySettings(BaseModel):
    """``snapshot`` is the file that `pegboard registry` writes and searches, by default in ``cache_dir``. If it is
    named, MCP clients are offered `find_server`, whose answers take at most ``tokens``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: Path | None = None
    tokens: int = Field(default=1_500, ge=300, le=20_000)
