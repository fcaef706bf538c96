"""What the cost of a tool consists of, on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from pegboard.catalog.ingest import read_catalog
from pegboard.compose.shard_jobs import ShardJob
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.encoders.onnx import CHARACTERS_PER_TOKEN, batches
from pegboard.retrieval.encoders.wordpiece import WordPiece
from pegboard.stores.vector_shards import VectorSpace
from pegboard.trust.scan import scan

TOOLS, TIMES = 200, 3


def figures(catalog: Path) -> dict[str, float]:
    """Milliseconds of the processor a tool, the best of `TIMES`, for every so manieth tool of a catalog; and its texts
    and tokens, with the padding of their batches."""
    tools = read_catalog(catalog).tools
    some = tools[:: max(1, len(tools) // TOOLS)][:TOOLS]
    job = ShardJob(folder=Path(), name="", tools=some, servers=())
    encoder, texts = OnnxEncoder(threads=1), job.texts
    tokenizer = WordPiece.from_json(
        (files("pegboard.retrieval.encoders") / "minilm" / "tokenizer.json").read_text("utf-8")
    )
    window = encoder.window

    def read() -> list[int]:
        cut = (text[: window * CHARACTERS_PER_TOKEN] for text in texts)
        return [min(window, len(tokenizer.encode(text).ids)) for text in cut]

    lengths = read()
    padded = sum(len(rows) * max(lengths[row] for row in rows) for rows in batches(lengths))
    encoder.encode_now(texts[:1])
    tokens_ms, whole_ms = _best(read), _best(lambda: encoder.encode_now(texts))
    parts = {
        "tokens": tokens_ms,
        "model": whole_ms - tokens_ms,
        "digests": _best(lambda: job.made_from(VectorSpace.of(encoder))),
        "scan": _best(lambda: [scan(tool) for tool in some]),
    }
    return {f"part_ms/{name}": each / len(some) for name, each in parts.items()} | {
        "texts_a_tool": len(texts) / len(some),
        "tokens_a_tool": sum(lengths) / len(some),
        "padding": padded / sum(lengths) - 1,
    }


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(TIMES):
        began = time.thread_time()
        work()
        times.append(1000 * (time.thread_time() - began))
    return min(times)
