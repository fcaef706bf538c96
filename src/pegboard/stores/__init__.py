"""State behind the seams: embeddings, tool definitions, events, sessions, statistics, spending and pins."""

from pegboard.stores.definitions import SqliteDefinitions
from pegboard.stores.events import FanOut, JsonLinesEvents, LogEvents
from pegboard.stores.memory import MemoryDefinitions, MemoryEmbeddings, MemoryEvents
from pegboard.stores.pins import MemoryPins, SqlitePins
from pegboard.stores.sessions import MemorySessions, SqliteSessions
from pegboard.stores.spend import MemorySpend, SqliteSpend
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
    "MemoryPins",
    "MemorySessions",
    "MemorySpend",
    "MemoryStatistics",
    "SqliteDefinitions",
    "SqliteEmbeddings",
    "SqlitePins",
    "SqliteSessions",
    "SqliteSpend",
    "SqliteStatistics",
    "TieredEmbeddings",
]
