"""State behind the seams: embeddings, tool definitions and events so far."""

from pegboard.stores.definitions import SqliteDefinitions
from pegboard.stores.events import FanOut, JsonLinesEvents, LogEvents
from pegboard.stores.memory import MemoryDefinitions, MemoryEmbeddings, MemoryEvents
from pegboard.stores.sqlite import SqliteEmbeddings
from pegboard.stores.tiered import TieredEmbeddings

__all__ = [
    "FanOut",
    "JsonLinesEvents",
    "LogEvents",
    "MemoryDefinitions",
    "MemoryEmbeddings",
    "MemoryEvents",
    "SqliteDefinitions",
    "SqliteEmbeddings",
    "TieredEmbeddings",
]
