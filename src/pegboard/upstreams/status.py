"""The status of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "ready", "idle", "signed_out", "unhealthy", "stopped"]
"""``idle``: not running, with known tools; the next call starts it. ``signed_out``: it waits for a sign-in.
``stopped``: no longer configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """``latency_ms`` is from start to a complete listing. ``known``: its tools are known, from this run or an earlier
    one."""

    name: str
    state: State
    reason: str = ""
    tools: int = 0
    latency_ms: float | None = None
    protocol: str = ""
    known: bool = False

    @property
    def settled(self) -> bool:
        """Whether there is a connection, or a known reason why not."""
        return self.state != "starting"

    @property
    def heard_of(self) -> bool:
        """Whether its tools are known, or the reason why they are not."""
        return self.known or self.settled

    @property
    def available(self) -> bool:
        """Whether a call would be answered, as far as is known; a call waits while the server starts."""
        return self.state in ("ready", "idle") or (self.state == "starting" and self.known)
