"""smartmcp-router's EmbeddingIndex: its own MiniLM and FAISS over names, descriptions and parameters."""

from __future__ import annotations

from collections.abc import Sequence

from mcp.types import Tool
from smartmcp.embedding import EmbeddingIndex

from .minilm import model_folder
from .protocol import PeerTool, Search, serve


def build(tools: Sequence[PeerTool], k: int, _variant: str) -> Search:
    index = EmbeddingIndex(model_folder())
    index.build_index([Tool.model_validate(tool.definition()) for tool in tools])
    return lambda text: [tool.name for tool, _ in index.search(text, k)]


if __name__ == "__main__":
    serve("smartmcp-router", build)
