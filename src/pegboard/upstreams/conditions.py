"""What all servers of a fleet have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pegboard.model import ToolId
from pegboard.seams import Clock, Definitions
from pegboard.upstreams.limits import USUAL, Limits
from pegboard.upstreams.present import Present

HEALTH_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Times are seconds; ``idle_stop`` 0 is never. ``environment`` is what servers inherit and variables stand for.

    A server that let a call time out has ``health_timeout`` to say anything at all.

    ``admit`` is asked right before a call is sent, when the server is known to be there, and raises for a tool that is
    not what it was when it was chosen. ``present`` are the clients that can be asked outside any request.
    """

    connect_timeout: float
    call_timeout: float
    clock: Clock
    environment: Mapping[str, str]
    definitions: Definitions | None = None
    lazy: bool = False
    idle_stop: float = 0.0
    limits: Limits = USUAL
    health_timeout: float = HEALTH_TIMEOUT
    admit: Callable[[ToolId], None] = lambda tool: None
    present: Present = field(default_factory=Present)
