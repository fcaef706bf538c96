"""State in files on one machine, which several processes may share.

Begin with `database`: the connection through which everything is read and written, and the tables.
"""

from pegboard.stores.sqlite.activity import SqliteActivity
from pegboard.stores.sqlite.archive import SqliteArchive
from pegboard.stores.sqlite.audit_lines import SqliteAudit
from pegboard.stores.sqlite.cache import SqliteDefinitions, SqliteEmbeddings
from pegboard.stores.sqlite.database import FileStore, SqliteFile
from pegboard.stores.sqlite.habits import SqliteHabits
from pegboard.stores.sqlite.kept_results import SqliteResults
from pegboard.stores.sqlite.pins import SqlitePins
from pegboard.stores.sqlite.rates import SqliteRates
from pegboard.stores.sqlite.sessions import SqliteSessions, SqliteSigningKeys
from pegboard.stores.sqlite.spend import SqliteSpend
from pegboard.stores.sqlite.statistics import SqliteLessons, SqliteStatistics

__all__ = [
    "FileStore",
    "SqliteActivity",
    "SqliteArchive",
    "SqliteAudit",
    "SqliteDefinitions",
    "SqliteEmbeddings",
    "SqliteFile",
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
