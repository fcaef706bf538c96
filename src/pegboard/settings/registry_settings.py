"""Options of the snapshot of an MCP registry."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class RegistrySettings(BaseModel):
    """``snapshot`` is the file that `pegboard registry` writes and searches; without one, a file in ``cache_dir``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: Path | None = None
