"""The statements on activity that SQLite and PostgreSQL share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pegboard.activity_entries import (
    DAY_SECONDS,
    FIELDS,
    ActivityEntry,
    ActivityGroup,
    ActivityQuery,
    ActivityTotals,
    Grouping,
    row_of,
)

Statement = tuple[str, list[Any]]
REMOVED = 6_000
"""Rows removed at a time, so that no statement takes long."""
SUMS = (
    "count(*), sum(CASE WHEN error <> '' THEN 1 ELSE 0 END), sum(failures), sum(searches), sum(tokens_before), "
    "sum(tokens_after), sum(billed), sum(saved)"
)
COLUMNS = ", ".join(FIELDS)


def table(whole: str, real: str) -> tuple[str, ...]:
    """The statements that create the table and its indexes, with the names of the types of numbers."""
    reals, wholes = ("at", "latency_ms"), ("tools", "offered", "failures", "searches", "tokens_before", "tokens_after")
    kinds = dict.fromkeys(reals, real) | dict.fromkeys((*wholes, "billed", "saved"), whole)
    columns = ", ".join(f"{name} {kinds.get(name, 'text')} NOT NULL" for name in FIELDS)
    return (
        f"CREATE TABLE activity ({columns}, day {whole} NOT NULL, PRIMARY KEY (id))",
        "CREATE INDEX activity_by_time ON activity (at, id)",
        "CREATE INDEX activity_of_a_key ON activity (key, at)",
        "CREATE INDEX activity_of_a_conversation ON activity (conversation, at)",
        "CREATE INDEX activity_by_day ON activity "
        "(day, at, error, failures, searches, tokens_before, tokens_after, billed, saved)",
    )


def upsert(mark: str) -> str:
    """The statement for a row of `stored`, which replaces the row with the same id."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in (*FIELDS[1:], "day"))
    return (
        f"INSERT INTO activity ({COLUMNS}, day) VALUES ({', '.join([mark] * (len(FIELDS) + 1))}) "  # noqa: S608
        f"ON CONFLICT (id) DO UPDATE SET {changed}"
    )


def stored(entries: Iterable[ActivityEntry]) -> list[tuple[Any, ...]]:
    """Rows in a fixed order, so that two writers cannot deadlock."""
    latest = {entry.id: entry for entry in entries}
    return [(*row_of(latest[name]), latest[name].day) for name in sorted(latest)]


def select(query: ActivityQuery, most: int, mark: str) -> Statement:
    """The matching entries, the newest first."""
    chosen: list[tuple[str, list[Any]]] = [
        (f"{name} = {mark}", [value])
        for name in ("door", "key", "conversation")
        if (value := getattr(query, name)) is not None
    ]
    if query.since is not None:
        chosen.append((f"at >= {mark}", [query.since]))
    if query.failed:
        chosen.append(("(error <> '' OR failures > 0)", []))
    if query.before is not None:
        chosen.append((f"(at, id) < ({mark}, {mark})", list(query.before)))
    where = f" WHERE {' AND '.join(condition for condition, _ in chosen)}" if chosen else ""
    return (
        f"SELECT {COLUMNS} FROM activity{where} ORDER BY at DESC, id DESC LIMIT {int(most)}",  # noqa: S608
        [value for _, values in chosen for value in values],
    )


def select_one(mark: str) -> str:
    return f"SELECT {COLUMNS} FROM activity WHERE id = {mark}"  # noqa: S608


def by_day(since: float, mark: str) -> Statement:
    query = f"SELECT day, {SUMS} FROM activity WHERE day >= {mark} AND at >= {mark} GROUP BY day ORDER BY day"  # noqa: S608
    return query, [int(since // DAY_SECONDS), since]


def by(grouping: Grouping, since: float, most: int, mark: str) -> Statement:
    """The sums of each value of a column, the one with the latest entry first."""
    return (
        f"SELECT {grouping}, min(at), max(at), {SUMS} FROM activity WHERE at >= {mark} "  # noqa: S608
        f"GROUP BY {grouping} ORDER BY max(at) DESC, {grouping} LIMIT {int(most)}",
        [since],
    )


def delete_old(mark: str) -> str:
    """Delete the first `REMOVED` rows that are not younger than a time; repeat it until it removes nothing."""
    old = f"SELECT id FROM activity WHERE at <= {mark} ORDER BY at LIMIT {REMOVED}"  # noqa: S608
    return f"DELETE FROM activity WHERE id IN ({old})"  # noqa: S608


def delete_of(key: str | None, conversations: Collection[str] | None, mark: str) -> Statement:
    """Delete the entries of a key, of conversations, or all."""
    conditions, values = [], list[Any]()
    if key is not None:
        conditions.append(f"key = {mark}")
        values.append(key)
    if conversations is not None:
        conditions.append(f"conversation IN ({', '.join([mark] * len(conversations)) or 'NULL'})")
        values += sorted(conversations)
    return f"DELETE FROM activity{' WHERE ' if conditions else ''}{' AND '.join(conditions)}", values  # noqa: S608


def totals_from(values: Sequence[Any]) -> ActivityTotals:
    return ActivityTotals(*map(int, values))


def days_from(rows: Iterable[Sequence[Any]]) -> list[tuple[int, ActivityTotals]]:
    return [(int(day), totals_from(sums)) for day, *sums in rows]


def groups_from(rows: Iterable[Sequence[Any]]) -> list[ActivityGroup]:
    return [
        ActivityGroup(name=name, first=first, last=last, totals=totals_from(sums)) for name, first, last, *sums in rows
    ]
