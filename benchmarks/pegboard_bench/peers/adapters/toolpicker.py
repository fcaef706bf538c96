"""toolpicker: RRF of BM25 over names, parameters and descriptions with MiniLM over descriptions."""

from __future__ import annotations

from collections.abc import Sequence

from toolpicker import FunctionSchemaSource, ToolPicker

from .minilm import DIMENSIONS, MiniLM
from .protocol import PeerTool, Search, serve


class Embedder(MiniLM):
    dimensions = DIMENSIONS


def build(tools: Sequence[PeerTool], k: int, _variant: str) -> Search:
    source = FunctionSchemaSource(
        [{"name": tool.uid, "description": tool.description, "parameters": tool.schema} for tool in tools]
    )
    picker = ToolPicker(source, embedder=Embedder())
    return lambda text: [tool.name for tool in picker.select(text, k=k)]


if __name__ == "__main__":
    serve("toolpicker", build)
