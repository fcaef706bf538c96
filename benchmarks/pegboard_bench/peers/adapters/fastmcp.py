"""FastMCP's BM25SearchTransform over names, descriptions and parameters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool

from .protocol import PeerTool, Search, serve


def build(tools: Sequence[PeerTool], k: int, _variant: str) -> Search:
    loop = asyncio.new_event_loop()
    transform = BM25SearchTransform(max_results=k)
    listed = [Tool(name=tool.uid, description=tool.description, parameters=tool.schema) for tool in tools]

    def search(text: str) -> list[str]:
        return [tool.name for tool in loop.run_until_complete(transform._search(listed, text))]

    search("index the tools")
    return search


if __name__ == "__main__":
    serve("fastmcp", build)
