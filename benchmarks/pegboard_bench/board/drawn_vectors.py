"""An encoder that takes next to no time, so that what a board does besides it can be measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from pegboard.model import Floats


class DrawnVectors:
    """Unit vectors drawn from a generator whose seed is the text's hash: as wide as the encoder's of the package."""

    provider = "drawn"
    model = "drawn"
    dimensions = 384
    at_once = 256

    async def encode(self, texts: Sequence[str]) -> Floats:
        rows = np.empty((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")
            row[:] = np.random.default_rng(seed).standard_normal(self.dimensions, np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
