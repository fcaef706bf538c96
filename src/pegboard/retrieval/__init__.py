"""How well a text and a tool fit together: encoders, indexes, rankers, and the query of a turn."""

from pegboard.retrieval.categories import categories_of, describe_category
from pegboard.retrieval.encoders.cached import CachedEncoder
from pegboard.retrieval.encoders.onnx import OnnxEncoder
from pegboard.retrieval.harness import as_said
from pegboard.retrieval.progress import Progress
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
    "as_said",
    "categories_of",
    "describe_category",
    "ranker",
]
