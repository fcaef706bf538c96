"""Stores in memory, for one process. They are the shortest description of what every backend does.

Begin with `sessions`.
"""

from pegboard.stores.memory.activity import MemoryActivity
from pegboard.stores.memory.audit_lines import MemoryAudit
from pegboard.stores.memory.cache import MemoryDefinitions, MemoryEmbeddings
from pegboard.stores.memory.events import MemoryEvents
from pegboard.stores.memory.habits import MemoryHabits
from pegboard.stores.memory.kept_results import MemoryResults
from pegboard.stores.memory.pins import MemoryPins
from pegboard.stores.memory.rates import MemoryRates
from pegboard.stores.memory.sessions import MemoryReplicas, MemorySessions, MemorySigningKeys
from pegboard.stores.memory.spend import MemorySpend
from pegboard.stores.memory.statistics import MemoryLessons, MemoryStatistics

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
]
