"""How long routing takes, on one thread of the encoder, beside the encoder's own time for the same texts."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pegboard.board import Board
from pegboard.catalog import Catalog
from pegboard.compose import build, default_parts
from pegboard.retrieval import OnnxEncoder, Progress
from pegboard.settings import load_settings

ROUTES = 240
WARM_STARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds, one value a text in the same order; ``cold_index`` and ``warm_starts`` in milliseconds too."""

    size: int
    new: Sequence[float]
    encoder: Sequence[float]
    cached: Sequence[float]
    cold_index: float
    warm_starts: Sequence[float]

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
            f"warm_start_ms/{self.size}": median(self.warm_starts),
        }


async def measure(
    catalog: Catalog, catalog_file: Path, texts: Sequence[str], cache: Path, progress: Progress
) -> Latency:
    """Index from nothing, then route each text once as new and once again, beside the encoder alone."""
    settings = load_settings(cache_dir=cache, encoder_threads=1)
    encoder = OnnxEncoder(threads=1)
    encoder.encode_now(["the model is loaded before the clock starts"])
    board = build(settings, catalog, parts=default_parts(settings, encoder=encoder))
    started = time.perf_counter()
    await board.warm(progress)
    cold_index = _since(started)
    await board.route("a first route, which builds the other indexes")
    new, alone = await _interleaved(board, encoder, texts)
    cached = [await _route(board, text) for text in texts]
    starts = [warm_start(catalog_file, cache, text) for text in texts[:WARM_STARTS]]
    return Latency(size=len(catalog), new=new, encoder=alone, cached=cached, cold_index=cold_index, warm_starts=starts)


async def _interleaved(board: Board, encoder: OnnxEncoder, texts: Sequence[str]) -> tuple[list[float], list[float]]:
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


async def _route(board: Board, text: str) -> float:
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
    command = [sys.executable, "-m", "pegboard.bench.warm_start", str(catalog_file), str(cache), text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = process.stdout.readline() if process.stdout else ""
        elapsed = _since(started)
    if said.strip() != "routed":
        raise RuntimeError(f"The warm start failed with exit code {process.returncode}")
    return elapsed


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
