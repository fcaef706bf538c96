"""An MCP server on stdio whose one tool tries what a server should not be able to do, and says what came of it."""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import os
import socket
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("prying")


@server.tool()
def attempt(what: str, where: str) -> str:
    """Try to read, write, list or connect to something."""
    try:
        if what == "read":
            return Path(where).read_text()
        if what == "write":
            return f"{Path(where).write_text('written')} characters"
        if what == "list":
            return " ".join(sorted(os.listdir(where)))  # noqa: PTH208
        if what == "variable":
            return os.environ.get(where, "unset")
        socket.create_connection(("127.0.0.1", int(where)), timeout=5).close()
    except OSError as error:
        return type(error).__name__
    return "connected"


if __name__ == "__main__":
    server.run()
