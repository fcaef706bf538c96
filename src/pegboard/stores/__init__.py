"""State behind the seams: embeddings, events, sessions and statistics."""

from pegboard.stores.events import FanOut, JsonLinesEvents, LogEvents
from pegboard.stores.memory import MemoryEmbeddings, MemoryEvents
from pegboard.stores.sessions import MemorySessions, SqliteSessions
from pegboard.stores.sqlite import SqliteEmbeddings
from pegboard.stores.statistics import MemoryStatistics, SqliteStatistics
from pegboard.stores.tiered import TieredEmbeddings

__all__ = [
    "FanOut",
    "JsonLinesEvents",
    "LogEvents",
    "MemoryEmbeddings",
    "MemoryEvents",
    "MemorySessions",
    "MemoryStatistics",
    "SqliteEmbeddings",
    "SqliteSessions",
    "SqliteStatistics",
    "TieredEmbeddings",
]
