"""FastMCP's own proxy, as its documentation sets one up. Run by the Python of an environment that has fastmcp.

`python fastmcp_proxy.py stdio|PORT COMMAND [ARGUMENT …]`; `python fastmcp_proxy.py version` says which it is.
"""

from __future__ import annotations

import sys

import fastmcp  # type: ignore[import-not-found,unused-ignore]  # a peer, in an environment of its own
from fastmcp.client.transports import StdioTransport  # type: ignore[import-not-found,unused-ignore]
from fastmcp.server import create_proxy  # type: ignore[import-not-found,unused-ignore]

if __name__ == "__main__":
    _, where, *behind = sys.argv
    if where == "version":
        print(fastmcp.__version__)  # noqa: T201
        sys.exit()
    proxy = create_proxy(StdioTransport(command=behind[0], args=behind[1:]), name="fastmcp")
    if where == "stdio":
        proxy.run(transport="stdio", show_banner=False)
    else:
        quiet = {"access_log": False}
        proxy.run(
            transport="http",
            host="127.0.0.1",
            port=int(where),
            show_banner=False,
            log_level="warning",
            uvicorn_config=quiet,
        )
