"""State in a PostgreSQL database. Every change is one transaction that locks its rows.

Begin with `database`: the connections through which every statement runs, and the tables.
"""

from pegboard.stores.postgres.activity import PostgresActivity
from pegboard.stores.postgres.archive import PostgresArchive
from pegboard.stores.postgres.audit_lines import PostgresAudit
from pegboard.stores.postgres.cache import PostgresEmbeddings
from pegboard.stores.postgres.database import PostgresDatabase
from pegboard.stores.postgres.habits import PostgresHabits
from pegboard.stores.postgres.kept_results import PostgresResults
from pegboard.stores.postgres.pins import PostgresPins
from pegboard.stores.postgres.rates import PostgresRates
from pegboard.stores.postgres.sessions import PostgresReplicas, PostgresSessions, PostgresSigningKeys
from pegboard.stores.postgres.spend import PostgresSpend
from pegboard.stores.postgres.statistics import PostgresLessons, PostgresStatistics

__all__ = [
    "PostgresActivity",
    "PostgresArchive",
    "PostgresAudit",
    "PostgresDatabase",
    "PostgresEmbeddings",
    "PostgresHabits",
    "PostgresLessons",
    "PostgresPins",
    "PostgresRates",
    "PostgresReplicas",
    "PostgresResults",
    "PostgresSessions",
    "PostgresSigningKeys",
    "PostgresSpend",
    "PostgresStatistics",
]
