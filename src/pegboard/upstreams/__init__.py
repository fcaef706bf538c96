"""Connections to the servers behind the board."""

from pegboard.upstreams.explained import NotCarriedOut
from pegboard.upstreams.fleet import Changes, Fleet
from pegboard.upstreams.limits import Limits, Room
from pegboard.upstreams.origin import ORIGIN, Inputs, Origin
from pegboard.upstreams.status import ServerStatus
from pegboard.upstreams.upstream import Upstream

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
