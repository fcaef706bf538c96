"""The MCP gateway: one server before many."""

from pegboard.extras import required_mcp

required_mcp()

from pegboard.gateways.mcp.exposure import is_small, static_listing  # noqa: E402 - after the check
from pegboard.gateways.mcp.host import open_gateway, open_host  # noqa: E402
from pegboard.gateways.mcp.stdio import serve_stdio  # noqa: E402

__all__ = ["is_small", "open_gateway", "open_host", "serve_stdio", "static_listing"]
