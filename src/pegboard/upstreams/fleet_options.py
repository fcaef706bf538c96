"""Options that all servers of a fleet share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pegboard.model import ToolId
from pegboard.protocols import Clock, Definitions
from pegboard.upstreams.client_levels import ClientLevels
from pegboard.upstreams.http_pools import HttpPools
from pegboard.upstreams.limits import DEFAULT_LIMITS, UpstreamLimits
from pegboard.upstreams.server_requests import ConnectedClients
from pegboard.upstreams.shared_tools import SharedTools
from pegboard.upstreams.start_turns import StartTurns

if TYPE_CHECKING:
    from pegboard.telemetry.trace_spans import Tracer
    from pegboard.upstreams.oauth.sign_ins import SignIns
    from pegboard.upstreams.sign_in_questions import SignInQuestions

HEALTH_TIMEOUT = 10.0


async def admit_all(_tool: ToolId) -> None:
    """No tool is held back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """Times are in seconds; ``idle_stop`` 0 is never. Servers inherit ``environment``, and variables come from it.

    After a call timed out, a server has ``health_timeout`` to send anything at all.

    ``admit`` is called right before a call is sent, once the server is connected, and raises for a tool that has
    changed since it was chosen. ``clients`` can be asked for their roots outside any request, ``levels`` are the log
    levels that they want. ``shared_tools`` has the definitions that several connections list alike, ``pools`` the TCP
    connections of all; servers whose tools are known start in ``start_turns``. ``sign_ins`` has the tokens for servers
    that want one; without it, none is sent. ``tracer`` starts a span for each request if that is turned on.
    """

    connect_timeout: float
    call_timeout: float
    clock: Clock
    environment: Mapping[str, str]
    definitions: Definitions | None = None
    lazy: bool = False
    idle_stop: float = 0.0
    limits: UpstreamLimits = DEFAULT_LIMITS
    health_timeout: float = HEALTH_TIMEOUT
    admit: Callable[[ToolId], Awaitable[None]] = admit_all
    clients: ConnectedClients = field(default_factory=ConnectedClients)
    levels: ClientLevels = field(default_factory=ClientLevels)
    shared_tools: SharedTools = field(default_factory=SharedTools)
    pools: HttpPools = field(default_factory=HttpPools)
    start_turns: StartTurns = field(default_factory=StartTurns)
    sign_ins: SignIns | None = None
    sign_in_questions: SignInQuestions | None = None
    tracer: Tracer | None = None
