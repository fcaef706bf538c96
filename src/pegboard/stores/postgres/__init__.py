"""State in a PostgreSQL database: every change is one transaction that locks the rows it is about."""

from pegboard.stores.postgres.archive import PostgresArchive
from pegboard.stores.postgres.database import PostgresDatabase
from pegboard.stores.postgres.embeddings import PostgresEmbeddings
from pegboard.stores.postgres.lessons import PostgresLessons
from pegboard.stores.postgres.pins import PostgresPins
from pegboard.stores.postgres.replicas import PostgresReplicas
from pegboard.stores.postgres.sessions import PostgresSessions
from pegboard.stores.postgres.signing_keys import PostgresSigningKeys
from pegboard.stores.postgres.spend import PostgresSpend
from pegboard.stores.postgres.statistics import PostgresStatistics

__all__ = [
    "PostgresArchive",
    "PostgresDatabase",
    "PostgresEmbeddings",
    "PostgresLessons",
    "PostgresPins",
    "PostgresReplicas",
    "PostgresSessions",
    "PostgresSigningKeys",
    "PostgresSpend",
    "PostgresStatistics",
]
