"""Connections to the servers behind the board."""

from pegboard.upstreams.fleet import Changes, Fleet
from pegboard.upstreams.status import ServerStatus
from pegboard.upstreams.upstream import Upstream

__all__ = ["Changes", "Fleet", "ServerStatus", "Upstream"]
