"""adk-tool-search's BM25ToolIndex over names, descriptions and parameters."""

from __future__ import annotations

from collections.abc import Sequence

from adk_tool_search.catalog import ToolEntry
from adk_tool_search.index import BM25ToolIndex

from .protocol import PeerTool, Search, serve


def build(tools: Sequence[PeerTool], k: int, _variant: str) -> Search:
    index = BM25ToolIndex()
    index.rebuild(tuple(_entry(tool) for tool in tools))
    return lambda text: [result.name for result in index.search(text, limit=k)]


def _entry(tool: PeerTool) -> ToolEntry:
    """It searches texts alone, so there is no tool behind them."""
    parameters = tuple(tool.parameters().items())
    return ToolEntry(name=tool.uid, description=tool.description, parameters=parameters, tool=None)


if __name__ == "__main__":
    serve("adk-tool-search", build)
