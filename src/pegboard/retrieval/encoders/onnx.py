"""The bundled encoder: all-MiniLM-L6-v2, quantised, on ONNX Runtime. Never torch."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.cached_property import cached_property
from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.retrieval.encoders.wordpiece import Tokens, WordPiece
from pegboard.retrieval.intents import Span

BATCH = 32
BATCH_TOKENS = 512
"""Tokens of a batch, padding included: attention takes quadratic memory, and larger batches are no faster."""
FEW = 8
"""Maximum texts of a query; larger requests encode tools."""
CHARACTERS_PER_TOKEN = 24
"""The tokenizer gets at most this many characters per token of the window; it would cut the rest (P6)."""


class OnnxEncoder:
    """Sentence embeddings in process, shape (n, 384), rows of length 1 (Tool Attention eq. 4).

    Loads on first use. Any number of threads may encode concurrently; texts beyond the window are cut (P24).
    Raises EncoderError if the model's files are missing or broken.
    """

    provider = "onnx"

    def __init__(self, folder: Traversable | None = None, *, threads: int = 0) -> None:
        self._folder = folder or files("pegboard.retrieval.encoders") / "minilm"
        self._threads = threads

    @cached_property
    def card(self) -> dict[str, Any]:
        """Origin, hashes and figures of the model, from `card.json`."""
        try:
            return dict(json.loads((self._folder / "card.json").read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise EncoderError(
                f"The encoder's card cannot be read from {self._folder}: {error}.",
                remedy="Install pegboard again, or run scripts/build_encoder.py in a checkout.",
            ) from error

    @property
    def model(self) -> str:
        """The model's name and the hash of its file, since each quantisation has its own embedding space."""
        return f"{self.card['id']}@{self.card['model_sha256'][:12]}"

    @property
    def dimensions(self) -> int:
        return int(self.card["dimensions"])

    @property
    def window(self) -> int:
        """Maximum tokens of a text; the rest is cut."""
        return int(self.card["window"])

    async def encode(self, texts: Sequence[str]) -> Floats:
        return await self._aside(self._bulk if len(texts) > FEW else self._workers, self.encode_now, texts)

    def encode_now(self, texts: Sequence[str]) -> Floats:
        """Like `encode`, on the calling thread. Texts of equally many tokens are batched, to avoid padding."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        tokens = [self._read(text.ids) for text in self._tokens(texts)]
        for rows in batches([len(ids) for ids in tokens]):
            (out[rows],) = self._session.run(["embedding"], _inputs([tokens[row] for row in rows]))
        return out

    async def encode_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        return await self._aside(self._workers, self.encode_clauses_now, text, spans)

    def encode_clauses_now(self, text: str, spans: Sequence[Span]) -> Floats:
        """Vectors of the text, then of its part in each span (characters), shape (1 + len(spans), 384); one model run.

        A part's vector is the mean of its tokens' vectors in the context of the whole text (late chunking, Günther et
        al. 2024); a part without any token that was read gets the vector of the whole text. Of a text beyond the
        window, the start and the end are read, where requests usually are (P6).
        """
        (tokens,) = self._tokens([text])
        read = edges(len(tokens.ids), self.window)
        whole, states = self._session.run(["embedding", "tokens"], _inputs([np.array(tokens.ids)[read]]))
        starts, ends = np.array(tokens.offsets)[read].T
        parts = [(starts >= start) & (ends <= end) & (ends > starts) for start, end in spans]
        return np.stack(
            [whole[0], *(_unit(states[0][part].mean(axis=0)) if part.any() else whole[0] for part in parts)]
        )

    async def _aside(self, workers: ThreadPoolExecutor, work: Callable[..., Floats], *given: Any) -> Floats:
        """Run off the event loop (P25), on at most as many threads as cores: each keeps its own memory."""
        return await asyncio.get_running_loop().run_in_executor(workers, work, *given)

    @cached_property
    def _bulk(self) -> ThreadPoolExecutor:
        """A single thread for large requests, so that no query waits behind new tools."""
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder-bulk")

    @cached_property
    def _workers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="encoder")

    def _read(self, ids: Sequence[int]) -> NDArray[np.int64]:
        """The tokens that the window has room for; the last one closes the text and stays."""
        return np.array(ids if len(ids) <= self.window else [*ids[: self.window - 1], ids[-1]], np.int64)

    def _tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text with their offsets, from as much of it as may be read."""
        limit = self.window * CHARACTERS_PER_TOKEN
        return [self._tokenizer.encode(text[:limit]) for text in texts]

    @cached_property
    def _tokenizer(self) -> WordPiece:
        try:
            return WordPiece.from_json((self._folder / "tokenizer.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise EncoderError(
                f"The encoder's tokenizer cannot be loaded: {error}.",
                remedy="Install pegboard again; `pegboard doctor` checks it.",
            ) from error

    @cached_property
    def _session(self) -> Any:
        runtime = onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False  # it would keep the memory of the largest batch for ever
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            with as_file(
                self._folder / "model.onnx"
            ) as model:  # loading the bytes here would keep them in memory twice
                return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EncoderError(
                f"The encoder cannot be loaded: {error}.", remedy="Install pegboard again; `pegboard doctor` checks it."
            ) from error


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Which texts to encode together, by their lengths in tokens: similar lengths, and fewer of long ones.

    >>> list(batches([4, 256, 5, 256, 256]))
    [[0, 2], [1, 3], [4]]
    """
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and (len(rows) == BATCH or (len(rows) + 1) * lengths[row] > BATCH_TOKENS):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def edges(length: int, window: int) -> NDArray[np.intp]:
    """Which tokens of a text are read: all, or equally many from its start and its end.

    >>> edges(9, window=4)
    array([0, 1, 7, 8])
    """
    half = window // 2
    return np.r_[:half, length - half : length] if length > window else np.arange(length)


def _inputs(rows: Sequence[NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """Model inputs: tokens of several texts, padded to the longest."""
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for row, of_one in enumerate(rows):
        ids[row, : len(of_one)] = of_one
        mask[row, : len(of_one)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


SILENT = ("ORT_DISABLE_TELEMETRY", "1")
"""From 1.32 on ONNX Runtime contacts its vendor's event collector and keeps a device id in ~/.cache, unless this is set
before its library loads. Earlier versions ignore the variable and have no telemetry on Linux and macOS."""


def onnxruntime() -> Any:
    """The module with its telemetry off: in this process, and through the environment in its child processes.

    If it was imported before, telemetry is off from now on.
    """
    os.environ.update([SILENT])
    import onnxruntime as runtime

    runtime.disable_telemetry_events()  # for Windows, and if the library was loaded without the variable
    return runtime
