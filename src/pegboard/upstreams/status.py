"""How a server is doing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "ready", "idle", "unhealthy", "stopped"]
"""``idle``: not running, its tools known, started with its next call. ``stopped``: no longer configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """``latency_ms`` is from start to a complete listing. ``known``: its tools are, from this run or an earlier one."""

    name: str
    state: State
    reason: str = ""
    tools: int = 0
    latency_ms: float | None = None
    protocol: str = ""
    known: bool = False

    @property
    def settled(self) -> bool:
        """There is a connection, or it is known why not."""
        return self.state != "starting"

    @property
    def heard_of(self) -> bool:
        """Its tools are known, or why they are not."""
        return self.known or self.settled

    @property
    def available(self) -> bool:
        """A call would be answered, as far as is known; one of a server that is starting waits for it."""
        return self.state in ("ready", "idle") or (self.state == "starting" and self.known)
