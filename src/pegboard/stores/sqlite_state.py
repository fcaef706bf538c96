"""The shape of the file that holds state: sessions, statistics, spend and pins."""

from __future__ import annotations

from pegboard.stores.migrations import Migration

REMEDY = "Set state_dir to a folder that can be written, or move the file away: its state starts anew."

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
)
"""Files from before there were named migrations have the first one's tables, with no average in them."""
