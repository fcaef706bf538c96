"""toolscope with the encoder that it documents, over names and the beginnings of descriptions."""

from __future__ import annotations

from collections.abc import Sequence

import toolscope

from .minilm import model_folder
from .protocol import PeerTool, Search, serve


def build(tools: Sequence[PeerTool], k: int, _variant: str) -> Search:
    embedding = toolscope.EmbeddingConfig(provider="sentence-transformers", model=model_folder())
    index = toolscope.index([tool.definition() for tool in tools], embedding=embedding)
    return lambda text: [tool["name"] for tool in index.filter(text, k=k)]


if __name__ == "__main__":
    serve("toolscope", build)
