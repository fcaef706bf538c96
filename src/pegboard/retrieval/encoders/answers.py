"""What an embeddings service answered, as vectors of length 1; trusted in nothing."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from pegboard.model import Floats


class Nonsense(ValueError):  # noqa: N818
    """``str`` says what is wrong with the answer, and holds nothing of it."""


def vectors_of(body: bytes, count: int, dimensions: int) -> Floats:
    """Rows of length 1 in the order of the texts, shape (count, dimensions); any width where that is 0.

    Raises Nonsense.
    """
    rows = _rows(body)
    if len(rows) != count:
        raise Nonsense(f"{len(rows)} vectors for {count} texts")
    vectors = np.stack([vector for _, vector in sorted(zip(_places(rows), _read(rows), strict=True), key=_place)])
    if dimensions and vectors.shape[1] != dimensions:
        raise Nonsense(f"vectors of {vectors.shape[1]} numbers and not of {dimensions}")
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise Nonsense("numbers that are none")
    if not lengths.all():
        raise Nonsense("a vector of length 0")
    return np.asarray(vectors / lengths, np.float32)


def _rows(body: bytes) -> list[dict[str, Any]]:
    try:
        rows = from_json(body)["data"]
    except (ValueError, LookupError, TypeError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Nonsense("an answer that is no list of embeddings")
    return rows


def _places(rows: list[dict[str, Any]]) -> list[int]:
    """What `index` says of each row; some servers leave it out and keep the order."""
    places = [row.get("index", place) for place, row in enumerate(rows)]
    if not all(type(place) is int for place in places) or sorted(places) != list(range(len(rows))):
        raise Nonsense("indexes that are not those of the texts")
    return places


def _place(row: tuple[int, NDArray[np.float64]]) -> int:
    return row[0]


def _read(rows: list[dict[str, Any]]) -> list[NDArray[np.float64]]:
    try:
        vectors = [_vector(row["embedding"]) for row in rows]
    except (ValueError, LookupError, TypeError):
        raise Nonsense("embeddings that are no lists of numbers") from None
    if any(vector.ndim != 1 or vector.shape != vectors[0].shape or not vector.size for vector in vectors):
        raise Nonsense("embeddings of different widths")
    return vectors


def _vector(embedding: Any) -> NDArray[np.float64]:
    """From a list of numbers, or from float32, little-endian, in base64."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float64)
    return np.asarray(embedding, np.float64)
