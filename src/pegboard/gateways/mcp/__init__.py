"""The MCP gateway: one server before many."""

from pegboard.gateways.mcp.exposure import is_small, static_listing
from pegboard.gateways.mcp.host import open_gateway, open_host
from pegboard.gateways.mcp.stdio import serve_stdio

__all__ = ["is_small", "open_gateway", "open_host", "serve_stdio", "static_listing"]
