"""The shape of the file that holds state: sessions, statistics, spend, pins and lessons."""

from __future__ import annotations

from pegboard.stores.migrations import Migration

REMEDY = "Set state_dir to a folder that can be written, or move the file away: its state starts anew."

NOW = "CAST(strftime('%s', 'now') AS REAL)"
"""Seconds since the epoch, in SQL."""

STATE = (
    Migration(
        "sessions and counts",
        (
            "CREATE TABLE IF NOT EXISTS sessions (key TEXT PRIMARY KEY, version INTEGER NOT NULL, "
            "expires REAL NOT NULL, state TEXT NOT NULL) WITHOUT ROWID",
            "CREATE TABLE IF NOT EXISTS tool_statistics (server TEXT, name TEXT, calls INTEGER NOT NULL, "
            "successes INTEGER NOT NULL, PRIMARY KEY (server, name)) WITHOUT ROWID",
        ),
    ),
    Migration(
        "moving averages",
        (
            "ALTER TABLE tool_statistics ADD COLUMN success REAL",
            "ALTER TABLE tool_statistics ADD COLUMN variance REAL",
            "ALTER TABLE tool_statistics ADD COLUMN failure REAL",
            "ALTER TABLE tool_statistics ADD COLUMN latency REAL",
        ),
    ),
    Migration(
        "spend and pins",
        (
            "CREATE TABLE spend_meters (kind TEXT, name TEXT, spent INTEGER NOT NULL, PRIMARY KEY (kind, name)) "
            "WITHOUT ROWID",
            "CREATE TABLE spend_holds (kind TEXT, name TEXT, reservation TEXT, amount INTEGER NOT NULL, "
            "expires REAL NOT NULL, PRIMARY KEY (kind, name, reservation)) WITHOUT ROWID",
            "CREATE INDEX holds_of_a_reservation ON spend_holds (reservation)",
            "CREATE INDEX holds_by_expiry ON spend_holds (expires)",
            "CREATE TABLE pins (server TEXT, name TEXT, approved TEXT NOT NULL, seen TEXT NOT NULL, "
            "PRIMARY KEY (server, name)) WITHOUT ROWID",
        ),
    ),
    Migration(
        "last use",
        (
            "ALTER TABLE tool_statistics ADD COLUMN used REAL NOT NULL DEFAULT 0",
            f"UPDATE tool_statistics SET used = {NOW}",  # noqa: S608
            "ALTER TABLE spend_meters ADD COLUMN used REAL",
            f"UPDATE spend_meters SET used = {NOW} WHERE kind <> 'key'",  # noqa: S608
        ),
    ),
    Migration(
        "lessons",
        (
            "CREATE TABLE lessons (key TEXT PRIMARY KEY, requests REAL NOT NULL, conversations REAL NOT NULL, "
            "later REAL NOT NULL, asked REAL NOT NULL, growth REAL NOT NULL, wanted REAL NOT NULL, "
            "added REAL NOT NULL, called REAL NOT NULL, changed REAL NOT NULL, returned REAL NOT NULL, "
            "kept REAL NOT NULL, alike REAL NOT NULL, used REAL NOT NULL) WITHOUT ROWID",
        ),
    ),
    Migration(
        "texts of pins",
        ("ALTER TABLE pins ADD COLUMN approved_text TEXT", "ALTER TABLE pins ADD COLUMN seen_text TEXT"),
    ),
)
"""What was there counts as used when it was migrated. Files from before there were named migrations have the first
one's tables, with no average in them."""
