"""The tables of SQLite and PostgreSQL, and the statements that read and write records as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pegboard.records import (
    RECORDS,
    EmbeddingRecord,
    HoldRecord,
    Key,
    Kind,
    Record,
    SessionState,
    columns,
)
from pegboard.stores.retention import LATE, check_age

PAGE = 500
"""Rows read or written at a time."""
SWEEP = 200
"""Saved sessions between two removals of expired ones."""
REMOVED = 6_000
"""Rows removed at a time, so that no statement takes long. A hold has three rows."""
HOLDS = (
    "(SELECT reservation, max(CASE kind WHEN 'session' THEN name END) AS session, "
    "max(CASE kind WHEN 'key' THEN name END) AS caller, max(CASE kind WHEN 'day' THEN name END) AS day, "
    "max(amount) AS amount, max(expires) AS expires FROM spend_holds GROUP BY reservation) AS holds"
)
"""A reservation has one row for each of its three meters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """``mark`` is the placeholder of a value, ``bytewise`` orders text as Python does, ``unlocked`` skips rows that
    another transaction has locked."""

    mark: str
    bytewise: str = ""
    unlocked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The table of one kind of record.

    ``stamp`` is the column with the time at which a row was last used or ends. An inserted row replaces an existing one
    if its column ``better`` is larger. Rows that end are kept for ``late`` more seconds. ``rows`` and ``primary``,
    columns and primary key, are given if they differ from the record's.
    """

    kind: Kind
    name: str
    stamp: str | None = None
    better: str | None = None
    late: float = 0.0
    source: str | None = None
    rows: tuple[str, ...] = ()
    primary: tuple[str, ...] = ()

    @property
    def identity(self) -> tuple[str, ...]:
        return RECORDS[self.kind].names

    def page(self, dialect: Dialect, *, first: bool) -> str:
        """Select records in key order: the first page, or the page after a key."""
        ordered = ", ".join(f"{name}{dialect.bytewise}" for name in self.identity)
        after = f" WHERE ({ordered}) > ({', '.join([dialect.mark] * len(self.identity))})"
        query = f"SELECT {', '.join(columns(self.kind))} FROM {self.source or self.name}"  # noqa: S608
        return f"{query}{'' if first else after} ORDER BY {ordered} LIMIT {PAGE}"

    def insert(self, dialect: Dialect) -> str:
        """Insert a row; of two with the same key the better one stays."""
        rows, primary = self.rows or columns(self.kind), self.primary or self.identity
        taken = ", ".join(f"{name} = excluded.{name}" for name in rows if name not in primary)
        instead = f"UPDATE SET {taken} WHERE excluded.{self.better} > {self.name}.{self.better}"
        return (
            f"INSERT INTO {self.name} ({', '.join(rows)}) VALUES ({', '.join([dialect.mark] * len(rows))}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(primary)}) DO {instead if self.better else 'NOTHING'}"
        )

    def delete_one(self, dialect: Dialect) -> str:
        """Delete the rows of one key."""
        return self._delete(" AND ".join(f"{name} = {dialect.mark}" for name in self.identity))

    def delete_some(self) -> str:
        """Delete the first `REMOVED` rows."""
        return self._delete(self._first(""))

    def delete_old(self, dialect: Dialect) -> str:
        """Delete the first `REMOVED` rows whose stamp is not after a time. Raises ValueError for kinds that do not
        expire."""
        check_age(self.kind)
        return self._delete(self._first(f" WHERE {self.stamp} <= {dialect.mark}", dialect.unlocked))

    def _first(self, where: str, unlocked: str = "") -> str:
        primary = ", ".join(self.primary or self.identity)
        chosen = f"SELECT {primary} FROM {self.name}{where} ORDER BY {', '.join(self.identity)} LIMIT {REMOVED}"  # noqa: S608
        return f"({primary}) IN ({chosen}{unlocked})"

    def _delete(self, condition: str) -> str:
        return f"DELETE FROM {self.name} WHERE {condition} RETURNING {', '.join(self.identity)}"  # noqa: S608

    def count(self, now: float) -> str:
        """Count the records that are not over."""
        ends = f" WHERE expires > {now - self.late!r}" if self.stamp == "expires" else ""
        return f"SELECT count(*) FROM {self.source or self.name}{ends}"  # noqa: S608


TABLES: dict[Kind, Table] = {
    "session": Table(kind="session", name="sessions", stamp="expires", better="expires"),
    "statistics": Table(kind="statistics", name="tool_statistics", stamp="used", better="used"),
    "lesson": Table(kind="lesson", name="lessons", stamp="used", better="used"),
    "habit": Table(kind="habit", name="habits", stamp="used", better="used"),
    "meter": Table(kind="meter", name="spend_meters", stamp="used", better="spent"),
    "hold": Table(
        kind="hold",
        name="spend_holds",
        stamp="expires",
        late=LATE,
        source=HOLDS,
        rows=("kind", "name", "reservation", "amount", "expires"),
        primary=("kind", "name", "reservation"),
    ),
    "pin": Table(kind="pin", name="pins"),
    "switch": Table(kind="switch", name="switches", better="at"),
    "embedding": Table(kind="embedding", name="embeddings", stamp="used", rows=("key", "vector", "used")),
}


def rows_of(record: Record, now: float) -> list[tuple[Any, ...]]:
    """The rows to insert for a record."""
    if isinstance(record, EmbeddingRecord):
        return [(record.key, record.vector, now)]
    if isinstance(record, HoldRecord):
        return [(*meter, record.reservation, record.amount, record.expires) for meter in record.meters]
    return [tuple(map(_stored, (getattr(record, name) for name in columns(record.record))))]


def record_of(kind: Kind, row: Sequence[Any]) -> Record:
    fields = dict(zip(columns(kind), row, strict=True))
    if kind == "session":
        fields["state"] = SessionState(**json.loads(fields["state"]))
    return RECORDS[kind](**fields)


def deletion(
    table: Table, dialect: Dialect, keys: Sequence[Key] | None, before: float | None
) -> tuple[str, list[tuple[Any, ...]]]:
    """The statement of `Archive.remove`, and the values of each execution.

    Without keys, repeat it until it removes nothing.
    """
    if before is not None:
        return table.delete_old(dialect), [(before,)]
    if keys is not None:
        return table.delete_one(dialect), sorted(keys)
    return table.delete_some(), [()]


def _stored(value: Any) -> Any:
    """A session's state as `stores.sessions.encode_session` writes it; other values unchanged."""
    return json.dumps(asdict(value), separators=(",", ":")) if isinstance(value, SessionState) else value
