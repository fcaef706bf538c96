"""A server with tools that have an interface, made with the SDK's own extension (MCP Apps, SEP-1865)."""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

from mcp.server.apps import Apps
from mcp.server.mcpserver import MCPServer

apps = Apps()


@apps.tool(resource_uri="ui://clock/app.html", description="Tell the time")
def tell_time() -> str:
    return "noon"


@apps.tool(resource_uri="ui://clock/app.html", visibility=["app"], description="Wind the clock up")
def wind_clock() -> str:
    return "wound"


apps.add_html_resource("ui://clock/app.html", "<!doctype html><title>clock</title>")
server = MCPServer("clock", extensions=[apps])


@server.tool()
def plain_tool(word: str) -> str:
    """Say a word again"""
    return word


if __name__ == "__main__":
    server.run()
