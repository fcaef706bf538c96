"""The tables of the database's schema."""

from __future__ import annotations

from pegboard.stores.migrations import Migration

NOW = "extract(epoch FROM now())"

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
    Migration(
        "replicas",
        ("CREATE TABLE replicas (id text PRIMARY KEY, url text NOT NULL, ends double precision NOT NULL)",),
    ),
    Migration(
        "last use",
        (
            f"ALTER TABLE tool_statistics ADD COLUMN used double precision NOT NULL DEFAULT {NOW}",
            "ALTER TABLE spend_meters ADD COLUMN used double precision",
            f"UPDATE spend_meters SET used = {NOW} WHERE kind <> 'key'",  # noqa: S608
            f"ALTER TABLE embeddings ADD COLUMN used double precision NOT NULL DEFAULT {NOW}",
        ),
    ),
    Migration(
        "lessons",
        (
            "CREATE TABLE lessons (key text PRIMARY KEY, requests double precision NOT NULL, "
            "conversations double precision NOT NULL, later double precision NOT NULL, "
            "asked double precision NOT NULL, growth double precision NOT NULL, wanted double precision NOT NULL, "
            "added double precision NOT NULL, called double precision NOT NULL, changed double precision NOT NULL, "
            "returned double precision NOT NULL, kept double precision NOT NULL, alike double precision NOT NULL, "
            "used double precision NOT NULL)",
        ),
    ),
    Migration(
        "texts of pins",
        ("ALTER TABLE pins ADD COLUMN approved_text text", "ALTER TABLE pins ADD COLUMN seen_text text"),
    ),
    Migration(
        "signing keys",
        ("CREATE TABLE signing_keys (id text PRIMARY KEY, made double precision NOT NULL, secret text NOT NULL)",),
    ),
)
"""What was there counts as used when it was migrated."""
