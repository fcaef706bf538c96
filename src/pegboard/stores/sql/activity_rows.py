"""The statements on activity that SQLite and PostgreSQL share."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from pegboard.activity_entries import CHOSEN, FIELDS, USAGE, ActivityEntry, ActivityQuery
from pegboard.extras import required

Statement = tuple[str, list[Any]]
REMOVED = 500
"""Rows removed at a time: whoever writes new ones waits for no more."""
COLUMNS = ", ".join(FIELDS)
SUMMED = (
    *("id", "at", "door", "kind", "key", "client", "conversation", "model", "called", "error"),
    *("failures", "searches", "tokens_before", "tokens_after", "billed", "saved", *USAGE),
)
"""The fields that sums are made of."""
FIRST_FIELDS = (
    *("id", "at", "door", "kind", "key", "client", "conversation", "text", "upstream", "model", "profile", "encoder"),
    *("outcome", "tools", "offered", "scores", "called", "brought_back", "failures", "searches"),
    *("tokens_before", "tokens_after", "billed", "saved", "latency_ms", "error"),
)
"""The fields that the first migration made columns of."""
BROAD = frozenset({"door", "outcome"})
"""Fields with few values, each of which many rows have."""
INDEXED_BUT = {"client": "", "model": "", "outcome": "filtered"}
"""Fields that are indexed, but for the value that most rows have: there, the index of all rows by time is as good."""
AS_JSON = ("called", "brought_back")
"""Fields that a row has as JSON, besides `scores`, which an entry has as JSON, too."""
_places = tuple(map(FIELDS.index, AS_JSON))


def table(whole: str, real: str) -> tuple[str, ...]:
    """The statements that create the table and its indexes, with the names of the types of numbers."""
    reals, wholes = ("at", "latency_ms"), ("tools", "offered", "failures", "searches", "tokens_before", "tokens_after")
    kinds = dict.fromkeys(reals, real) | dict.fromkeys((*wholes, "billed", "saved"), whole)
    columns = ", ".join(f"{name} {kinds.get(name, 'text')} NOT NULL" for name in FIRST_FIELDS)
    return (
        f"CREATE TABLE activity ({columns}, day {whole} NOT NULL, PRIMARY KEY (id))",
        "CREATE INDEX activity_by_time ON activity (at, id)",
        "CREATE INDEX activity_of_a_key ON activity (key, at)",
        "CREATE INDEX activity_of_a_conversation ON activity (conversation, at)",
        "CREATE INDEX activity_by_day ON activity "
        "(day, at, error, failures, searches, tokens_before, tokens_after, billed, saved)",
    )


def usage_columns(whole: str) -> tuple[str, ...]:
    """The statements that add what providers counted to decisions and their sums."""
    added = [f"ADD COLUMN {name} {whole} NOT NULL DEFAULT 0" for name in USAGE]
    return tuple(f"ALTER TABLE {table} {each}" for table in ("activity", "activity_sums") for each in added)


def filter_indexes(by_tool: str) -> tuple[str, ...]:
    """The statements that create the indexes of further filters of a list; ``by_tool`` is that of tools."""
    of_some = [
        f"CREATE INDEX activity_of_some_{name} ON activity ({name}, at) WHERE {name} <> '{usual}'"
        for name, usual in INDEXED_BUT.items()
    ]
    return (*of_some, by_tool)


def upsert(mark: str) -> str:
    """The statement for a row of `stored`, which replaces the row with the same id."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in (*FIELDS[1:], "day"))
    return (
        f"INSERT INTO activity ({COLUMNS}, day) VALUES ({', '.join([mark] * (len(FIELDS) + 1))}) "  # noqa: S608
        f"ON CONFLICT (id) DO UPDATE SET {changed}"
    )


def stored(entries: Iterable[ActivityEntry]) -> list[tuple[Any, ...]]:
    """Rows in a fixed order, so that two writers cannot deadlock. Sequences are JSON."""
    latest, encoded = {entry.id: entry for entry in entries}, required("msgspec", "mcp").json.encode

    def row(entry: ActivityEntry) -> tuple[Any, ...]:
        values = [*entry, entry.day]
        for place in _places:
            values[place] = encoded(values[place]).decode()
        return tuple(values)

    return [row(latest[name]) for name in sorted(latest)]


def as_stored(text: str) -> str:
    """A text as it is within a column of JSON."""
    return str(required("msgspec", "mcp").json.encode(text).decode())


def entry_of(row: Sequence[Any], names: Sequence[str] = FIELDS) -> ActivityEntry:
    """The entry of a row as `stored` makes it; of some of its fields, with the defaults of the others."""
    values = dict(zip(names, row, strict=True))
    values |= {name: tuple(json.loads(values[name])) for name in AS_JSON if name in values}
    return ActivityEntry(**values)


def select(
    query: ActivityQuery, most: int, mark: str, called: Callable[[str], Statement], *, aside: str = ""
) -> Statement:
    """The matching entries, the newest first. ``called`` is the condition that a tool was called; ``aside`` before a
    column keeps its index from being used, where a database does not know itself which one is the narrowest."""
    named = {name: value for name in CHOSEN if (value := getattr(query, name)) is not None}
    narrow = query.tool is not None or not BROAD.issuperset(named)
    chosen: list[tuple[str, list[Any]]] = [
        (f"{aside if narrow and name in BROAD else ''}{name} = {mark}", [value]) for name, value in named.items()
    ]
    chosen += [(f"{name} <> '{usual}'", []) for name, usual in INDEXED_BUT.items() if named.get(name, usual) != usual]
    if query.tool is not None:
        chosen.append(called(query.tool))
    if query.since is not None:
        chosen.append((f"at >= {mark}", [query.since]))
    if query.failed:
        chosen.append(("(error <> '' OR failures > 0)", []))
    if query.before is not None:
        at, id_ = query.before
        chosen.append((f"at <= {mark} AND (at, id) < ({mark}, {mark})", [at, at, id_]))
    where = f" WHERE {' AND '.join(condition for condition, _ in chosen)}" if chosen else ""
    return (
        f"SELECT {COLUMNS} FROM activity{where} ORDER BY at DESC, id DESC LIMIT {int(most)}",  # noqa: S608
        [value for _, values in chosen for value in values],
    )


def select_one(mark: str) -> str:
    return f"SELECT {COLUMNS} FROM activity WHERE id = {mark}"  # noqa: S608


def select_among(among: str) -> str:
    """What sums need of the rows with some ids; ``among`` is the condition on `id`, with a mark."""
    return f"SELECT {', '.join(SUMMED)} FROM activity WHERE {among}"  # noqa: S608


def delete(condition: str, values: Sequence[Any]) -> Statement:
    """Delete the first `REMOVED` rows that fulfil a condition, and return what sums need of them; repeat it until it
    removes nothing."""
    chosen = f"SELECT id FROM activity WHERE {condition} ORDER BY at, id LIMIT {REMOVED}"  # noqa: S608
    return f"DELETE FROM activity WHERE id IN ({chosen}) RETURNING {', '.join(SUMMED)}", list(values)  # noqa: S608


def delete_old(before: float, mark: str) -> Statement:
    return delete(f"at <= {mark}", [before])


def delete_of(key: str | None, conversations: Collection[str] | None, mark: str) -> Statement:
    """Delete the entries of a key, of conversations, or all."""
    conditions, values = ["1 = 1"], list[Any]()
    if key is not None:
        conditions.append(f"key = {mark}")
        values.append(key)
    if conversations is not None:
        conditions.append(f"conversation IN ({', '.join([mark] * len(conversations)) or 'NULL'})")
        values += sorted(conversations)
    return delete(" AND ".join(conditions), values)


def without_removed(
    entries: Mapping[str, ActivityEntry], before: Iterable[ActivityEntry], known: Collection[str]
) -> list[ActivityEntry]:
    """The entries, by their ids, without the ``known`` ones of which there is no row any more."""
    if not known:
        return list(entries.values())
    gone = set(known).difference([each.id for each in before])
    return [entry for id_, entry in entries.items() if id_ not in gone]


def summed_of(rows: Iterable[Sequence[Any]]) -> list[ActivityEntry]:
    """Entries with the fields that sums need, from rows of `SUMMED`."""
    return [entry_of(row, SUMMED) for row in rows]
