"""Statements on pins, statistics, lessons and habits that SQLite and PostgreSQL share."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from typing import Any

import numpy as np

from pegboard.habits import Habit, HabitKey
from pegboard.model import NEVER, Fingerprint, ToolId, ToolStatistics
from pegboard.traffic import COLUMNS, MOST, Seen

SUMS = np.dtype("<f4")
READ_PIN_VERSION = "SELECT version FROM pin_versions"
NEXT_PIN_VERSION = "UPDATE pin_versions SET version = version + 1"
"""The last statement of what approves: it locks one row for all writers."""
PinRow = tuple[str, str, str, str, str | None, str | None]
STATISTICS = tuple(field.name for field in fields(ToolStatistics))
READ_STATISTICS = f"SELECT server, name, {', '.join(STATISTICS)} FROM tool_statistics"  # noqa: S608
READ_LESSONS = f"SELECT key, {', '.join(COLUMNS)} FROM lessons WHERE key"  # noqa: S608
READ_HABITS = "SELECT key, server, name, sums, used FROM habits WHERE key"
WEIGHT = f"CASE WHEN lessons.conversations < {MOST!r} THEN 1.0 ELSE 0.5 END"
JOINED = ", ".join(f"{name} = {WEIGHT} * lessons.{name} + excluded.{name}" for name in COLUMNS)


def upsert_seen(mark: str) -> str:
    """The statement for a row of `seen_rows`; ``mark`` is the placeholder of a value.

    A missing text keeps the stored one. The text also becomes the approved one if both fingerprints are the same.
    """
    return (
        "INSERT INTO pins (server, name, approved, seen, approved_text, seen_text) "  # noqa: S608
        f"VALUES ({', '.join([mark] * 6)}) "
        "ON CONFLICT (server, name) DO UPDATE SET seen = excluded.seen, "
        "seen_text = CASE WHEN pins.seen = excluded.seen THEN coalesce(excluded.seen_text, pins.seen_text) "
        "ELSE excluded.seen_text END, "
        "approved_text = CASE WHEN pins.approved = excluded.seen "
        "THEN coalesce(excluded.seen_text, pins.approved_text) ELSE pins.approved_text END"
    )


def upsert_approved(mark: str) -> str:
    """The statement that approves a fingerprint, with its text if that is known."""
    return (
        f"INSERT INTO pins (server, name, approved, seen) VALUES ({', '.join([mark] * 4)}) "  # noqa: S608
        "ON CONFLICT (server, name) DO UPDATE SET approved = excluded.approved, "
        "approved_text = CASE excluded.approved WHEN pins.approved THEN pins.approved_text "
        "WHEN pins.seen THEN pins.seen_text END"
    )


def pin_versions(integer: str) -> tuple[str, str]:
    """The statements that make the table with the `version` of all pins; ``integer`` is the type of a large number."""
    return (
        f"CREATE TABLE pin_versions (id integer PRIMARY KEY CHECK (id = 1), version {integer} NOT NULL)",
        "INSERT INTO pin_versions VALUES (1, 0)",
    )


def seen_rows(
    seen: Mapping[ToolId, Fingerprint], texts: Mapping[ToolId, str], doubted: Collection[ToolId]
) -> list[PinRow]:
    """Rows in a fixed order, so that two writers cannot deadlock."""
    return [
        (*tool, NEVER, seen[tool], None, texts.get(tool))
        if tool in doubted
        else (*tool, seen[tool], seen[tool], texts.get(tool), texts.get(tool))
        for tool in sorted(seen)
    ]


def statistics_by_tool(rows: Iterable[Sequence[Any]], prior: ToolStatistics) -> dict[ToolId, ToolStatistics]:
    """The rows of `READ_STATISTICS`; ``prior`` fills in averages that were never stored."""
    return {ToolId(server, name): statistics_of(values, prior) for server, name, *values in rows}


def statistics_of(values: Sequence[Any], prior: ToolStatistics) -> ToolStatistics:
    """The `STATISTICS` columns of a row; the prior's value for one that is missing or infinite."""
    pairs = zip(STATISTICS, values, astuple(prior), strict=True)
    return ToolStatistics(
        **{column: default if value is None or not math.isfinite(value) else value for column, value, default in pairs}
    )


def upsert_lessons(mark: str) -> str:
    """`Seen.joined` as a statement; ``mark`` is the placeholder of each value: a key, its sums, and the time."""
    marks = ", ".join([mark] * (len(COLUMNS) + 2))
    return (
        f"INSERT INTO lessons (key, {', '.join(COLUMNS)}, used) VALUES ({marks}) "  # noqa: S608
        f"ON CONFLICT (key) DO UPDATE SET {JOINED}, used = excluded.used"
    )


def lesson_rows(sums: Mapping[str, Seen], now: float) -> list[tuple[Any, ...]]:
    """Rows in a fixed order, so that two writers cannot deadlock."""
    return [(key, *astuple(seen), now) for key, seen in sorted(sums.items())]


def lessons_by_key(rows: Iterable[Sequence[Any]]) -> dict[str, Seen]:
    return {key: Seen(**dict(zip(COLUMNS, values, strict=True))) for key, *values in rows}


def habits_by_key(rows: Iterable[Sequence[Any]]) -> dict[HabitKey, Habit]:
    """The rows of `READ_HABITS`."""
    return {HabitKey(*key): Habit(sums=np.frombuffer(bytes(sums), SUMS), used=used) for *key, sums, used in rows}


def habit_row(key: HabitKey, habit: Habit) -> tuple[str, str, str, bytes, float]:
    """A row to insert."""
    return (*key, habit.sums.astype(SUMS).tobytes(), habit.used)
