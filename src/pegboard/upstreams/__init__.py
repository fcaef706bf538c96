"""Connections to the servers behind the board."""

from pegboard.upstreams.fleet import Fleet
from pegboard.upstreams.upstream import ServerStatus, Upstream

__all__ = ["Fleet", "ServerStatus", "Upstream"]
