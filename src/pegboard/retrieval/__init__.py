"""Scores tools against a text: encoders, indexes, rankers, and the query of a turn. Begin with `rankers`."""

from pegboard.retrieval.categories import categories_of, describe_category
from pegboard.retrieval.encoders.encoder_cache import CachedEncoder
from pegboard.retrieval.encoders.onnx import OnnxEncoder
from pegboard.retrieval.nearest import Progress
from pegboard.retrieval.notes import mark_notes
from pegboard.retrieval.query import QUERIES, QueryKind
from pegboard.retrieval.rankers import Ranker, RankerKind, ranker
from pegboard.retrieval.retriever import Retriever

__all__ = [
    "QUERIES",
    "CachedEncoder",
    "OnnxEncoder",
    "Progress",
    "QueryKind",
    "Ranker",
    "RankerKind",
    "Retriever",
    "categories_of",
    "describe_category",
    "mark_notes",
    "ranker",
]
