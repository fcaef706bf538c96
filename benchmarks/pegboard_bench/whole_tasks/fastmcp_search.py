"""FastMCP's search before the servers of a configuration. Run by the Python of an environment that has fastmcp.

`python fastmcp_search.py CONFIG PORT`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fastmcp.server import create_proxy  # type: ignore[import-not-found,unused-ignore]  # a peer, elsewhere
from fastmcp.server.transforms.search import BM25SearchTransform  # type: ignore[import-not-found,unused-ignore]

if __name__ == "__main__":
    _, config, port = sys.argv
    proxy = create_proxy(json.loads(Path(config).read_text("utf-8")), name="fastmcp")
    proxy.add_transform(BM25SearchTransform(max_results=5))
    quiet = {"access_log": False}
    options = {"show_banner": False, "log_level": "warning", "uvicorn_config": quiet}
    proxy.run(transport="http", host="127.0.0.1", port=int(port), **options)
