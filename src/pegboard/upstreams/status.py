"""How a server is doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "ready", "idle", "unhealthy", "stopped"]
"""``idle``: not running, its tools known, started with its next call. ``stopped``: no longer configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """``latency_ms`` is from start to a complete listing."""

    name: str
    state: State
    reason: str = ""
    tools: int = 0
    latency_ms: float | None = None
    protocol: str = ""

    @property
    def settled(self) -> bool:
        """Its tools are known, or why they are not."""
        return self.state != "starting"

    @property
    def available(self) -> bool:
        """A call would be answered, as far as is known."""
        return self.state in ("ready", "idle")
