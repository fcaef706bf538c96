"""The encoder that comes in the package: all-MiniLM-L6-v2, quantised, on ONNX Runtime. Never torch."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.retrieval.encoders.runtime import onnxruntime
from pegboard.retrieval.intents import Span

BATCH = 32
BATCH_TOKENS = 512
"""Of a batch, about: attention takes memory with the square of a text's length, and more at once is no faster."""
SHORTEST_TOKEN = 4
"""Characters a token has on average, for that estimate."""
CHARACTERS_PER_TOKEN = 24
"""The tokenizer is handed at most this many characters a token of the window: it would cut the rest (P6)."""


class OnnxEncoder:
    """Sentence embeddings in process, shape (n, 384), rows of length 1 (seed 000 eq. 4).

    Loads on first use. Any number of threads may encode at once; texts beyond the window are cut (P24).
    Raises EncoderError where the model's files are missing or broken.
    """

    provider = "onnx"

    def __init__(self, folder: Traversable | None = None, *, threads: int = 0) -> None:
        self._folder = folder or files("pegboard.retrieval.encoders") / "minilm"
        self._threads = threads

    @cached_property
    def card(self) -> dict[str, Any]:
        """Origin, hashes and figures of the model, as `card.json` has them."""
        try:
            return dict(json.loads((self._folder / "card.json").read_text("utf-8")))
        except (OSError, ValueError) as error:
            raise EncoderError(
                f"The encoder's card cannot be read from {self._folder}: {error}.",
                remedy="Install pegboard again, or run scripts/build_encoder.py in a checkout.",
            ) from error

    @property
    def model(self) -> str:
        """The model's name and the hash of its file: another quantisation is another space."""
        return f"{self.card['id']}@{self.card['model_sha256'][:12]}"

    @property
    def dimensions(self) -> int:
        return int(self.card["dimensions"])

    @property
    def window(self) -> int:
        """The number of tokens that are read; the rest of a text is cut."""
        return int(self.card["window"])

    async def encode(self, texts: Sequence[str]) -> Floats:
        return await self._aside(self.encode_now, texts)

    def encode_now(self, texts: Sequence[str]) -> Floats:
        """As `encode`, on the calling thread. Short texts are encoded together, so that little is padded."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        for rows in batches([len(text) for text in texts], self.window):
            out[rows] = self._encode_batch([texts[row] for row in rows])
        return out

    async def encode_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        return await self._aside(self.encode_clauses_now, text, spans)

    def encode_clauses_now(self, text: str, spans: Sequence[Span]) -> Floats:
        """The text, then its part in each span (characters), shape (1 + len(spans), 384); one run of the model.

        A part's vector is the mean over its tokens as they are in the light of the whole (late chunking, Günther et
        al. 2024); a part without a token that was read has the vector of the whole text. Of a text beyond the
        window, its start and its end are read: a request stands there, not in the middle of a log (P6).
        """
        (tokens,) = self._tokens([text])
        read = edges(len(tokens.ids), self.window)
        whole, states = self._session.run(["embedding", "tokens"], _inputs([np.array(tokens.ids)[read]]))
        starts, ends = np.array(tokens.offsets)[read].T
        parts = [(starts >= start) & (ends <= end) & (ends > starts) for start, end in spans]
        return np.stack(
            [whole[0], *(_unit(states[0][part].mean(axis=0)) if part.any() else whole[0] for part in parts)]
        )

    async def _aside(self, work: Callable[..., Floats], *given: Any) -> Floats:
        """Off the event loop (P25), on no more threads than there are cores: each keeps memory of its own."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, work, *given)

    @cached_property
    def _workers(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="encoder")

    def _encode_batch(self, texts: Sequence[str]) -> Floats:
        rows = [np.array(tokens.ids) for tokens in self._tokens(texts)]
        beyond = self.window - 1  # the last token closes the text and stays
        cut = [ids if len(ids) <= self.window else np.append(ids[:beyond], ids[-1]) for ids in rows]
        (vectors,) = self._session.run(["embedding"], _inputs(cut))
        return np.asarray(vectors, np.float32)

    def _tokens(self, texts: Sequence[str]) -> list[Any]:
        """Every token of each text, of so much of it as may be read; with the place of each in the text."""
        limit = self.window * CHARACTERS_PER_TOKEN
        return list(self._tokenizer.encode_batch([text[:limit].encode("utf-8", "replace").decode() for text in texts]))

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_str((self._folder / "tokenizer.json").read_text("utf-8"))
        except Exception as error:  # tokenizers raises bare Exception for a file it cannot parse
            raise EncoderError(
                f"The encoder's tokenizer cannot be loaded: {error}.",
                remedy="Install pegboard again; `pegboard doctor` checks it.",
            ) from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        runtime = onnxruntime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False  # it would keep what the longest batch took, for ever
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            with as_file(self._folder / "model.onnx") as model:  # read by us, it would be in memory twice
                return runtime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EncoderError(
                f"The encoder cannot be loaded: {error}.", remedy="Install pegboard again; `pegboard doctor` checks it."
            ) from error


def batches(lengths: Sequence[int], window: int) -> Iterator[list[int]]:
    """Which texts to encode together, by their lengths in characters: those of about the same, few of long ones.

    >>> list(batches([8, 4000, 12, 4000], window=256))
    [[0, 2], [1, 3]]
    """
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        tokens = min(lengths[row] // SHORTEST_TOKEN + 2, window)
        if rows and (len(rows) == BATCH or (len(rows) + 1) * tokens > BATCH_TOKENS):
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows


def edges(length: int, window: int) -> NDArray[np.intp]:
    """Which of a text's tokens are read: all, or as many of its start as of its end.

    >>> edges(9, window=4)
    array([0, 1, 7, 8])
    """
    half = window // 2
    return np.r_[:half, length - half : length] if length > window else np.arange(length)


def _inputs(rows: Sequence[NDArray[np.int64]]) -> dict[str, NDArray[np.int64]]:
    """What the model reads: tokens of several texts, padded to the longest."""
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for row, of_one in enumerate(rows):
        ids[row, : len(of_one)] = of_one
        mask[row, : len(of_one)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector), np.float32)
