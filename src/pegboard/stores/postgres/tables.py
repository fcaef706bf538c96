"""The tables of the database's schema."""

from __future__ import annotations

from pegboard.stores.migrations import Migration

MIGRATIONS = (
    Migration(
        "tables",
        (
            "CREATE TABLE sessions (key text PRIMARY KEY, version bigint NOT NULL, "
            "expires double precision NOT NULL, state text NOT NULL)",
            "CREATE INDEX sessions_by_expiry ON sessions (expires)",
            "CREATE TABLE tool_statistics (server text, name text, calls bigint NOT NULL, successes bigint NOT NULL, "
            "success double precision NOT NULL, variance double precision NOT NULL, "
            "failure double precision NOT NULL, latency double precision NOT NULL, PRIMARY KEY (server, name))",
            "CREATE TABLE spend_meters (kind text, name text, spent bigint NOT NULL, PRIMARY KEY (kind, name))",
            "CREATE TABLE spend_holds (kind text, name text, reservation text, amount bigint NOT NULL, "
            "expires double precision NOT NULL, PRIMARY KEY (kind, name, reservation))",
            "CREATE INDEX holds_of_a_reservation ON spend_holds (reservation)",
            "CREATE INDEX holds_by_expiry ON spend_holds (expires)",
            "CREATE TABLE pins (server text, name text, approved text NOT NULL, seen text NOT NULL, "
            "PRIMARY KEY (server, name))",
            "CREATE TABLE embeddings (key text PRIMARY KEY, vector bytea NOT NULL)",
        ),
    ),
)
