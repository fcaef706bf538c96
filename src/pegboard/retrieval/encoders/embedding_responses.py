"""Parses and validates the response of an embeddings service into vectors of length 1."""

from __future__ import annotations

import base64
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from pegboard.model import Floats


class InvalidResponse(ValueError):  # noqa: N818
    """The message says what is wrong with the response, without quoting it."""


def vectors_of(body: bytes, count: int, dimensions: int) -> Floats:
    """Rows of length 1 in the order of the texts, shape (count, dimensions); any width if ``dimensions`` is 0.

    Raises InvalidResponse.
    """
    rows = _rows(body)
    if len(rows) != count:
        raise InvalidResponse(f"{len(rows)} vectors for {count} texts")
    vectors = np.stack(
        [vector for _, vector in sorted(zip(_places(rows), _read(rows), strict=True), key=itemgetter(0))]
    )
    if dimensions and vectors.shape[1] != dimensions:
        raise InvalidResponse(f"vectors of {vectors.shape[1]} numbers instead of {dimensions}")
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise InvalidResponse("values that are not finite numbers")
    if not lengths.all():
        raise InvalidResponse("a vector of length 0")
    return np.asarray(vectors / lengths, np.float32)


def _rows(body: bytes) -> list[dict[str, Any]]:
    try:
        rows = from_json(body)["data"]
    except (ValueError, LookupError, TypeError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidResponse("an answer that is not a list of embeddings")
    return rows


def _places(rows: list[dict[str, Any]]) -> list[int]:
    """The `index` of each row; some servers omit it and keep the order."""
    places = [row.get("index", place) for place, row in enumerate(rows)]
    if not all(type(place) is int for place in places) or sorted(places) != list(range(len(rows))):
        raise InvalidResponse("indexes that do not match the texts")
    return places


def _read(rows: list[dict[str, Any]]) -> list[NDArray[np.float64]]:
    try:
        vectors = [_vector(row["embedding"]) for row in rows]
    except (ValueError, LookupError, TypeError):
        raise InvalidResponse("embeddings that are not lists of numbers") from None
    if any(vector.ndim != 1 or vector.shape != vectors[0].shape or not vector.size for vector in vectors):
        raise InvalidResponse("embeddings of different widths")
    return vectors


def _vector(embedding: Any) -> NDArray[np.float64]:
    """A vector from a list of numbers, or from little-endian float32 in base64."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").astype(np.float64)
    return np.asarray(embedding, np.float64)
