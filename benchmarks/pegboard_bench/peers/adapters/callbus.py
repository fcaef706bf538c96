"""callbus with `--hybrid`: RRF of BM25 over whole definitions with MiniLM over names and descriptions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from callbus.adapters.bm25 import BM25Scorer
from callbus.adapters.dense import DenseScorer
from callbus.adapters.hybrid import HybridScorer
from callbus.domain import Query, Tool
from callbus.ingest.text import tool_text

from .minilm import MiniLM
from .protocol import PeerTool, Search, serve


class Encoder:
    name = "minilm"

    def __init__(self) -> None:
        self._model = MiniLM()

    def encode(self, texts: Sequence[str], *, kind: str) -> np.ndarray:
        return np.asarray(self._model.embed(texts), np.float32)


def build(tools: Sequence[PeerTool], k: int, _variant: str) -> Search:
    scorer = HybridScorer(DenseScorer(Encoder()), BM25Scorer())
    scorer.index([_documented(tool) for tool in tools])
    return lambda text: list(scorer.rank([Query(id="", text=text, qrels={})], k)[0].tool_ids)


def _documented(tool: PeerTool) -> Tool:
    return Tool(
        id=tool.uid,
        doc={"name": tool.name, "description": tool.description, "inputSchema": tool.schema},
        documentation=tool_text(tool.server, tool.name, tool.description, tool.schema),
        category=tool.server,
    )


if __name__ == "__main__":
    serve("callbus", build)
