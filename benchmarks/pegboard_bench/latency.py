"""How long routing takes, on one thread of the encoder, beside the encoder's own time for the same texts."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from pegboard.catalog import Catalog
from pegboard.compose import build_routing, default_parts
from pegboard.retrieval import CachedEncoder, OnnxEncoder, Progress, Retriever
from pegboard.retrieval.fusion import shipped
from pegboard.retrieval.intents import clauses
from pegboard.retrieval.rankers import HybridRanker
from pegboard.routing_board import RoutingBoard
from pegboard.settings import load_settings
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE

ROUTES = 240
WARM_STARTS = 5
TEXTS_A_TOOL = 2
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds, one value a text in the same order; ``cold_index`` and ``warm_starts`` in milliseconds too."""

    size: int
    new: Sequence[float]
    encoder: Sequence[float]
    cached: Sequence[float]
    cold_index: float
    warm_starts: Sequence[float]
    stages: Mapping[str, float] = field(default_factory=dict)
    """Median milliseconds of parts of a route whose embedding is cached."""
    memory: Mapping[str, float] = field(default_factory=dict)
    """Megabytes of the indexes."""

    def figures(self) -> dict[str, float]:
        return {
            f"latency_p50_ms/{self.size}/new": median(self.new),
            f"latency_p50_ms/{self.size}/cached": median(self.cached),
            f"latency_over_encoder/{self.size}/new": median(self.new) / median(self.encoder),
            f"latency_minus_encoder_ms/{self.size}/new": median(
                new - alone for new, alone in zip(self.new, self.encoder, strict=True)
            ),
            f"encoder_p50_ms/{self.size}": median(self.encoder),
            f"cold_index_s/{self.size}": self.cold_index / 1000,
            f"index_ms_per_vector/{self.size}": self.cold_index / (TEXTS_A_TOOL * self.size),
            **{f"stage_p50_ms/{self.size}/{stage}": value for stage, value in self.stages.items()},
            **{f"memory_mb/{self.size}/{part}": value for part, value in self.memory.items()},
        } | ({f"warm_start_ms/{self.size}": median(self.warm_starts)} if self.warm_starts else {})


async def measure(
    catalog: Catalog, catalog_file: Path, texts: Sequence[str], cache: Path, progress: Progress
) -> Latency:
    """Index from nothing, then route each text once as new and once again, beside the encoder alone."""
    settings = load_settings(cache_dir=cache, encoder_threads=1)
    encoder = OnnxEncoder(threads=1)
    encoder.encode_now(["the model is loaded before the clock starts"])
    board = build_routing(settings, catalog, parts=default_parts(settings, encoder=encoder))
    started = time.perf_counter()
    await board.warm(progress)
    cold_index = _since(started)
    await board.route("a first route, which builds the other indexes")
    new, alone = await _interleaved(board, encoder, texts)
    cached = [await _route(board, text) for text in texts]
    starts = [warm_start(catalog_file, cache, text) for text in texts[:WARM_STARTS]]
    documents = CachedEncoder(encoder, SqliteEmbeddings(cache / EMBEDDINGS_FILE))
    retriever = Retriever(catalog.tools, catalog.servers, documents=documents, queries=documents)
    return Latency(
        size=len(catalog),
        new=new,
        encoder=alone,
        cached=cached,
        cold_index=cold_index,
        warm_starts=starts,
        stages=await _stages(retriever, texts),
        memory={
            "vectors": (await retriever.meanings()).vectors.nbytes / MEGABYTE,
            "words": retriever.lexical.nbytes / MEGABYTE,
        },
    )


async def _stages(retriever: Retriever, texts: Sequence[str]) -> dict[str, float]:
    """Words, vectors and fusion apart, each text's vectors at hand."""
    ranker = HybridRanker(retriever)
    await ranker.warm()
    index, fusion = await retriever.meanings(), shipped()["hybrid"]
    taken: dict[str, list[float]] = {"words": [], "vectors": [], "fusion": []}
    for text in texts:
        vectors = await retriever.embed_clauses(text, clauses(text))
        parts = (await ranker.score(text)).parts
        for stage, work in (
            ("words", partial(retriever.lexical.scores, text)),
            ("vectors", partial(index.similarities, vectors)),
            ("fusion", partial(fusion.fuse, parts)),
        ):
            started = time.perf_counter()
            work()
            taken[stage].append(_since(started))
    return {stage: median(times) for stage, times in taken.items()}


async def _interleaved(
    board: RoutingBoard, encoder: OnnxEncoder, texts: Sequence[str]
) -> tuple[list[float], list[float]]:
    """Both times for each text, taken in turns, so that what slows the machine slows both."""
    new, alone = [], []
    for place, text in enumerate(texts):
        if place % 2:
            alone.append(_encode(encoder, text))
            new.append(await _route(board, text))
        else:
            new.append(await _route(board, text))
            alone.append(_encode(encoder, text))
    return new, alone


async def _route(board: RoutingBoard, text: str) -> float:
    started = time.perf_counter()
    await board.route(text)
    return _since(started)


def _encode(encoder: OnnxEncoder, text: str) -> float:
    started = time.perf_counter()
    encoder.encode_now([text])
    return _since(started)


def warm_start(catalog_file: Path, cache: Path, text: str) -> float:
    """A fresh process with the embeddings on disk: from its start until its first route is done, milliseconds."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "pegboard_bench.warm_start", str(catalog_file), str(cache), text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline() if process.stdout else ""
        elapsed = _since(started)
    if said.strip() != "routed":
        raise RuntimeError(f"The warm start failed with exit code {process.returncode}")
    return elapsed


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
