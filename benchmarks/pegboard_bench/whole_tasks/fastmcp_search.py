"""FastMCP's search before the servers of a configuration. Run by the Python of an environment that has fastmcp.

`python fastmcp_search.py CONFIG PORT`

The servers are connected once, for all sessions: FastMCP would start each of them anew for every request, which takes a
minute, and is no difference that the benchmark is about.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from fastmcp import Client  # type: ignore[import-not-found,unused-ignore]  # a peer, elsewhere
from fastmcp.server import create_proxy  # type: ignore[import-not-found,unused-ignore]
from fastmcp.server.transforms.search import BM25SearchTransform  # type: ignore[import-not-found,unused-ignore]


async def serve(config: dict[str, Any], port: int) -> None:
    """Serves until it is ended."""
    async with Client(config) as servers:
        proxy = create_proxy(servers, name="fastmcp")
        proxy.add_transform(BM25SearchTransform(max_results=5))
        options = {"show_banner": False, "log_level": "warning", "uvicorn_config": {"access_log": False}}
        await proxy.run_async(transport="http", host="127.0.0.1", port=port, **options)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[1]).read_text("utf-8")), int(sys.argv[2])))
