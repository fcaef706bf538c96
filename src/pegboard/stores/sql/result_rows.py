"""Kept results as rows, for SQLite and PostgreSQL."""

from __future__ import annotations


def table(binary: str, real: str, integer: str) -> tuple[str, ...]:
    """The statements that make the table."""
    return (
        f"CREATE TABLE kept_results (owner TEXT NOT NULL, handle TEXT NOT NULL, expires {real} NOT NULL, "
        f"size {integer} NOT NULL, body {binary} NOT NULL, PRIMARY KEY (owner, handle))",
        "CREATE INDEX kept_results_by_expiry ON kept_results (expires)",
    )


EXPIRE = "DELETE FROM kept_results WHERE expires <= {0}"
PUT = (
    "INSERT INTO kept_results (owner, handle, expires, size, body) VALUES ({0}, {0}, {0}, {0}, {0}) "
    "ON CONFLICT (owner, handle) DO UPDATE SET expires = excluded.expires"
)
"""A handle names one body, so a row with it needs a new end alone."""
EVICT = (
    "DELETE FROM kept_results WHERE owner = {0} AND handle IN (SELECT handle FROM (SELECT handle, "
    "SUM(size) OVER (ORDER BY expires DESC, handle = {0} DESC, handle) AS taken FROM kept_results WHERE owner = {0}) "
    "AS sizes WHERE taken > {0})"
)
"""Those that end first, of an owner, until the others fit."""
GET = "SELECT body FROM kept_results WHERE owner = {0} AND handle = {0} AND expires > {0}"
FORGET = "DELETE FROM kept_results WHERE owner = {0}"
FORGET_ALL = "DELETE FROM kept_results"
