"""State behind the seams: embeddings, tool definitions, events, sessions and statistics."""

from pegboard.stores.definitions import SqliteDefinitions
from pegboard.stores.events import FanOut, JsonLinesEvents, LogEvents
from pegboard.stores.memory import MemoryDefinitions, MemoryEmbeddings, MemoryEvents
from pegboard.stores.sessions import MemorySessions, SqliteSessions
from pegboard.stores.sqlite import SqliteEmbeddings
from pegboard.stores.statistics import MemoryStatistics, SqliteStatistics
from pegboard.stores.tiered import TieredEmbeddings

__all__ = [
    "FanOut",
    "JsonLinesEvents",
    "LogEvents",
    "MemoryDefinitions",
    "MemoryEmbeddings",
    "MemoryEvents",
    "MemorySessions",
    "MemoryStatistics",
    "SqliteDefinitions",
    "SqliteEmbeddings",
    "SqliteSessions",
    "SqliteStatistics",
    "TieredEmbeddings",
]
