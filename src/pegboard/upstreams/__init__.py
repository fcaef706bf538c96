"""Connections to the MCP servers that provide the tools: begin with `fleet`, then `upstream` and `connection`."""

from pegboard.extras import required_mcp

required_mcp()

from pegboard.errors import NotCarriedOut  # noqa: E402 - after the check
from pegboard.upstreams.fleet import Changes, Fleet  # noqa: E402
from pegboard.upstreams.limits import ListBudget, UpstreamLimits  # noqa: E402
from pegboard.upstreams.request_origin import ORIGIN, Inputs, Origin  # noqa: E402
from pegboard.upstreams.status import ServerStatus  # noqa: E402
from pegboard.upstreams.upstream import Upstream  # noqa: E402

__all__ = [
    "ORIGIN",
    "Changes",
    "Fleet",
    "Inputs",
    "ListBudget",
    "NotCarriedOut",
    "Origin",
    "ServerStatus",
    "Upstream",
    "UpstreamLimits",
]
