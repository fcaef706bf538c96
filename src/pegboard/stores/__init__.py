"""State behind the seams: embeddings, tool definitions, events, sessions, statistics, spending, pins and lessons."""

from pegboard.stores.definitions import SqliteDefinitions
from pegboard.stores.events import AccessLog, FanOut, JsonLinesEvents, LogEvents
from pegboard.stores.lessons import MemoryLessons, SqliteLessons
from pegboard.stores.memory import MemoryDefinitions, MemoryEmbeddings, MemoryEvents
from pegboard.stores.pins import MemoryPins, SqlitePins
from pegboard.stores.replicas import MemoryReplicas
from pegboard.stores.sessions import MemorySessions, SqliteSessions
from pegboard.stores.signing_keys import MemorySigningKeys, SqliteSigningKeys
from pegboard.stores.spend import MemorySpend, SqliteSpend
from pegboard.stores.sqlite import SqliteEmbeddings
from pegboard.stores.sqlite_archive import SqliteArchive
from pegboard.stores.statistics import MemoryStatistics, SqliteStatistics
from pegboard.stores.tiered import TieredEmbeddings
from pegboard.stores.tool_embeddings import ToolEmbeddings

__all__ = [
    "AccessLog",
    "FanOut",
    "JsonLinesEvents",
    "LogEvents",
    "MemoryDefinitions",
    "MemoryEmbeddings",
    "MemoryEvents",
    "MemoryLessons",
    "MemoryPins",
    "MemoryReplicas",
    "MemorySessions",
    "MemorySigningKeys",
    "MemorySpend",
    "MemoryStatistics",
    "SqliteArchive",
    "SqliteDefinitions",
    "SqliteEmbeddings",
    "SqliteLessons",
    "SqlitePins",
    "SqliteSessions",
    "SqliteSigningKeys",
    "SqliteSpend",
    "SqliteStatistics",
    "TieredEmbeddings",
    "ToolEmbeddings",
]
