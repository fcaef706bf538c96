"""The stores behind `pegboard.protocols`: one folder per backend, with the same module names in each.

`sessions` (with signing keys and replicas), `statistics` (with lessons), `habits`, `spend`, `rates`, `pins`,
`audit_lines`, `activity` and `cache` (embeddings, definitions) hold one kind of state each; `database` is the
connection and the schema, `archive` reads and writes all records but rates, activity and the audit log, `backend`
opens everything from the settings. `sql` is shared by SQLite and PostgreSQL. Modules beside the folders are shared by
all backends. Begin with `state`, then `memory`, the simplest backend.
"""

from pegboard.stores.memory import (
    MemoryActivity,
    MemoryAudit,
    MemoryDefinitions,
    MemoryEmbeddings,
    MemoryEvents,
    MemoryHabits,
    MemoryLessons,
    MemoryPins,
    MemoryRates,
    MemoryReplicas,
    MemoryResults,
    MemorySessions,
    MemorySigningKeys,
    MemorySpend,
    MemoryStatistics,
)
from pegboard.stores.sqlite import (
    SqliteActivity,
    SqliteArchive,
    SqliteAudit,
    SqliteDefinitions,
    SqliteEmbeddings,
    SqliteHabits,
    SqliteLessons,
    SqlitePins,
    SqliteRates,
    SqliteResults,
    SqliteSessions,
    SqliteSigningKeys,
    SqliteSpend,
    SqliteStatistics,
)

__all__ = [
    "MemoryActivity",
    "MemoryAudit",
    "MemoryDefinitions",
    "MemoryEmbeddings",
    "MemoryEvents",
    "MemoryHabits",
    "MemoryLessons",
    "MemoryPins",
    "MemoryRates",
    "MemoryReplicas",
    "MemoryResults",
    "MemorySessions",
    "MemorySigningKeys",
    "MemorySpend",
    "MemoryStatistics",
    "SqliteActivity",
    "SqliteArchive",
    "SqliteAudit",
    "SqliteDefinitions",
    "SqliteEmbeddings",
    "SqliteHabits",
    "SqliteLessons",
    "SqlitePins",
    "SqliteRates",
    "SqliteResults",
    "SqliteSessions",
    "SqliteSigningKeys",
    "SqliteSpend",
    "SqliteStatistics",
]
