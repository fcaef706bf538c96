"""When rows of a cache were last used: known to the day, so that reading seldom means writing."""

from __future__ import annotations

from pegboard.stores.migrations import Migration
from pegboard.stores.sqlite_state import NOW

MARKED = 86_400.0
"""Seconds for which a row that was used is not marked again."""

LAST_USE = {
    table: Migration(
        f"last use of {table}",
        (
            f"ALTER TABLE {table} ADD COLUMN used REAL NOT NULL DEFAULT 0",
            f"UPDATE {table} SET used = {NOW}",  # noqa: S608
        ),
    )
    for table in ("embeddings", "definitions")
}
"""For the tables of SQLite's caches. What was there counts as used when it was migrated."""
