"""The MCP gateway: one server before many."""

from pegboard.gateways.mcp.exposure import is_small, static_listing
from pegboard.gateways.mcp.server import open_gateway, serve_stdio

__all__ = ["is_small", "open_gateway", "serve_stdio", "static_listing"]
