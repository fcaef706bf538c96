"""The stores behind `pegboard.protocols`: one folder per backend, with the same module names in each.

`sessions` (with signing keys and replicas), `statistics` (with lessons), `habits`, `spend`, `pins` and `cache`
(embeddings, definitions) hold one kind of state each; `database` is the connection and the schema, `archive` reads and
writes all records, `backend` opens everything from the settings. `sql` is shared by SQLite and PostgreSQL. Modules
beside the folders are shared by all backends. Begin with `state`, then `memory`, the simplest backend.
"""

from pegboard.stores.memory import (
    MemoryDefinitions,
    MemoryEmbeddings,
    MemoryEvents,
    MemoryHabits,
    MemoryLessons,
    MemoryPins,
    MemoryReplicas,
    MemorySessions,
    MemorySigningKeys,
    MemorySpend,
    MemoryStatistics,
)
from pegboard.stores.sqlite import (
    SqliteArchive,
    SqliteDefinitions,
    SqliteEmbeddings,
    SqliteHabits,
    SqliteLessons,
    SqlitePins,
    SqliteSessions,
    SqliteSigningKeys,
    SqliteSpend,
    SqliteStatistics,
)

__all__ = [
    "MemoryDefinitions",
    "MemoryEmbeddings",
    "MemoryEvents",
    "MemoryHabits",
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
    "SqliteHabits",
    "SqliteLessons",
    "SqlitePins",
    "SqliteSessions",
    "SqliteSigningKeys",
    "SqliteSpend",
    "SqliteStatistics",
]
