"""The MCP gateway: one server before many."""

from pegboard.extras import required_mcp

required_mcp()

from pegboard.gateways.mcp.gateway.caller_view import static_listing  # noqa: E402 - after the check
from pegboard.gateways.mcp.gateway.catalog_view import is_small  # noqa: E402
from pegboard.gateways.mcp.gateway.host import open_gateway, open_host  # noqa: E402
from pegboard.gateways.mcp.transport.stdio import serve_stdio  # noqa: E402

__all__ = ["is_small", "open_gateway", "open_host", "serve_stdio", "static_listing"]
