"""The tables that hold state, alike in SQLite and PostgreSQL, and the statements that treat a record as a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pegboard.records import (
    RECORDS,
    EmbeddingRecord,
    HoldRecord,
    Key,
    Kind,
    Record,
    SessionRecord,
    SessionState,
    columns,
)
from pegboard.stores.spend import LATE

PAGE = 500
"""Rows that are read or written at once."""
REMOVED = 6_000
"""Rows that are removed at once, so that no statement takes long. A hold is three of them."""
HOLDS = (
    "(SELECT reservation, max(CASE kind WHEN 'session' THEN name END) AS session, "
    "max(CASE kind WHEN 'key' THEN name END) AS caller, max(CASE kind WHEN 'day' THEN name END) AS day, "
    "max(amount) AS amount, max(expires) AS expires FROM spend_holds GROUP BY reservation) AS holds"
)
"""Of a reservation there is a row for each of its three meters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """``mark`` stands for a value, ``bytewise`` makes text be ordered as in Python, ``unlocked`` leaves out rows that
    somebody else is working on."""

    mark: str
    bytewise: str = ""
    unlocked: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``stamp`` is the column that says when a row was last used, or ends; ``better`` the one by which a row that comes
    is taken instead of the one that is there. What ends is kept for ``late`` seconds more. ``rows`` and ``primary`` are
    given where a row is not just the record's fields."""

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
        """Records in the order of their keys; those after a key, unless it is the first page."""
        ordered = ", ".join(f"{name}{dialect.bytewise}" for name in self.identity)
        after = f" WHERE ({ordered}) > ({', '.join([dialect.mark] * len(self.identity))})"
        query = f"SELECT {', '.join(columns(self.kind))} FROM {self.source or self.name}"  # noqa: S608
        return f"{query}{'' if first else after} ORDER BY {ordered} LIMIT {PAGE}"

    def insert(self, dialect: Dialect) -> str:
        """A row; of two with the same key the better stays."""
        rows, primary = self.rows or columns(self.kind), self.primary or self.identity
        taken = ", ".join(f"{name} = excluded.{name}" for name in rows if name not in primary)
        instead = f"UPDATE SET {taken} WHERE excluded.{self.better} > {self.name}.{self.better}"
        return (
            f"INSERT INTO {self.name} ({', '.join(rows)}) VALUES ({', '.join([dialect.mark] * len(rows))}) "  # noqa: S608
            f"ON CONFLICT ({', '.join(primary)}) DO {instead if self.better else 'NOTHING'}"
        )

    def delete_one(self, dialect: Dialect) -> str:
        """The rows of one key."""
        return self._delete(" AND ".join(f"{name} = {dialect.mark}" for name in self.identity))

    def delete_some(self) -> str:
        """Of all rows the first."""
        return self._delete(self._first(""))

    def delete_old(self, dialect: Dialect) -> str:
        """Of the rows whose stamp is not after a moment the first. Raises ValueError for what does not grow old."""
        check_stamp(self.kind)
        return self._delete(self._first(f" WHERE {self.stamp} <= {dialect.mark}", dialect.unlocked))

    def _first(self, where: str, unlocked: str = "") -> str:
        primary = ", ".join(self.primary or self.identity)
        chosen = f"SELECT {primary} FROM {self.name}{where} ORDER BY {', '.join(self.identity)} LIMIT {REMOVED}"  # noqa: S608
        return f"({primary}) IN ({chosen}{unlocked})"

    def _delete(self, condition: str) -> str:
        return f"DELETE FROM {self.name} WHERE {condition} RETURNING {', '.join(self.identity)}"  # noqa: S608

    def count(self, now: float) -> str:
        """Those that are not over."""
        ends = f" WHERE expires > {now - self.late!r}" if self.stamp == "expires" else ""
        return f"SELECT count(*) FROM {self.source or self.name}{ends}"  # noqa: S608


TABLES: dict[Kind, Table] = {
    "session": Table(kind="session", name="sessions", stamp="expires", better="expires"),
    "statistics": Table(kind="statistics", name="tool_statistics", stamp="used", better="used"),
    "lesson": Table(kind="lesson", name="lessons", stamp="used", better="used"),
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
    "embedding": Table(kind="embedding", name="embeddings", stamp="used", rows=("key", "vector", "used")),
}


def rows_of(record: Record, now: float) -> list[tuple[Any, ...]]:
    """What is inserted for a record."""
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


def is_over(record: Record, now: float) -> bool:
    """Whether it is a session that has expired, or a hold that cannot be settled any more."""
    return isinstance(record, SessionRecord | HoldRecord) and record.expires + TABLES[record.record].late <= now


def live(records: Iterable[Record], now: float) -> Iterator[Record]:
    return (record for record in records if not is_over(record, now))


def deletion(
    table: Table, dialect: Dialect, keys: Sequence[Key] | None, before: float | None
) -> tuple[str, list[tuple[Any, ...]]]:
    """The statement of `Archive.remove`, and the values of each time that it is executed.

    Without keys it is to be repeated until nothing is left to be removed.
    """
    if before is not None:
        return table.delete_old(dialect), [(before,)]
    if keys is not None:
        return table.delete_one(dialect), sorted(keys)
    return table.delete_some(), [()]


def check_stamp(kind: Kind) -> None:
    """Raises ValueError for a kind that does not grow old."""
    if TABLES[kind].stamp is None:
        raise ValueError(f"A {kind} has no age.")


def _stored(value: Any) -> Any:
    """As `stores.sessions.encoded` writes it."""
    return json.dumps(asdict(value), separators=(",", ":")) if isinstance(value, SessionState) else value
