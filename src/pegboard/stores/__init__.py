"""State behind the seams: embeddings and events so far."""

from pegboard.stores.events import FanOut, JsonLinesEvents, LogEvents
from pegboard.stores.memory import MemoryEmbeddings, MemoryEvents
from pegboard.stores.sqlite import SqliteEmbeddings
from pegboard.stores.tiered import TieredEmbeddings

__all__ = [
    "FanOut",
    "JsonLinesEvents",
    "LogEvents",
    "MemoryEmbeddings",
    "MemoryEvents",
    "SqliteEmbeddings",
    "TieredEmbeddings",
]
