"""The encoder that comes in the package: all-MiniLM-L6-v2, quantised, on ONNX Runtime. Never torch."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np

from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.retrieval.intents import Span

BATCH = 32
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
        return await asyncio.to_thread(self.encode_now, texts)

    def encode_now(self, texts: Sequence[str]) -> Floats:
        """As `encode`, on the calling thread. Short texts are encoded together, so that little is padded."""
        out = np.zeros((len(texts), self.dimensions), np.float32)
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            out[rows] = self._encode_batch([texts[row] for row in rows])
        return out

    async def encode_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        return await asyncio.to_thread(self.encode_clauses_now, text, spans)

    def encode_clauses_now(self, text: str, spans: Sequence[Span]) -> Floats:
        """The text, then its part in each span (characters), shape (1 + len(spans), 384); one run of the model.

        A part's vector is the mean over its tokens as they are in the light of the whole (late chunking, Günther et
        al. 2024); a part without a token of its own, or beyond the window, has the vector of the whole text.
        """
        inputs, (encoded,) = self._inputs([text])
        whole, states = self._session.run(["embedding", "tokens"], inputs)
        starts, ends = np.array(encoded.offsets).T
        parts = [(starts >= start) & (ends <= end) & (ends > starts) for start, end in spans]
        return np.stack(
            [whole[0], *(_unit(states[0][part].mean(axis=0)) if part.any() else whole[0] for part in parts)]
        )

    def _encode_batch(self, texts: Sequence[str]) -> Floats:
        inputs, _ = self._inputs(texts)
        (vectors,) = self._session.run(["embedding"], inputs)
        return np.asarray(vectors, np.float32)

    def _inputs(self, texts: Sequence[str]) -> tuple[dict[str, Any], list[Any]]:
        """What the model reads, padded to the longest text, and the tokens it was made from."""
        limit = self.window * CHARACTERS_PER_TOKEN
        clean = [text[:limit].encode("utf-8", "replace").decode() for text in texts]
        encoded = self._tokenizer.encode_batch(clean)
        width = max(len(each.ids) for each in encoded)
        ids = np.zeros((len(texts), width), np.int64)
        mask = np.zeros((len(texts), width), np.int64)
        for row, each in enumerate(encoded):
            ids[row, : len(each.ids)] = each.ids
            mask[row, : len(each.ids)] = 1
        return {"input_ids": ids, "attention_mask": mask}, encoded

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
        tokenizer.enable_truncation(self.window)
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            model = (self._folder / "model.onnx").read_bytes()
            return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise EncoderError(
                f"The encoder cannot be loaded: {error}.", remedy="Install pegboard again; `pegboard doctor` checks it."
            ) from error


def _unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector), np.float32)
