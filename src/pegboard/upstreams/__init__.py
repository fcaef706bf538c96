"""Connections to the servers behind the board."""

from pegboard.extras import required_mcp

required_mcp()

from pegboard.upstreams.explained import NotCarriedOut  # noqa: E402 - after the check
from pegboard.upstreams.fleet import Changes, Fleet  # noqa: E402
from pegboard.upstreams.limits import Limits, Room  # noqa: E402
from pegboard.upstreams.origin import ORIGIN, Inputs, Origin  # noqa: E402
from pegboard.upstreams.status import ServerStatus  # noqa: E402
from pegboard.upstreams.upstream import Upstream  # noqa: E402

__all__ = [
    "ORIGIN",
    "Changes",
    "Fleet",
    "Inputs",
    "Limits",
    "NotCarriedOut",
    "Origin",
    "Room",
    "ServerStatus",
    "Upstream",
]
