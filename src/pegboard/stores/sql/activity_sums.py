"""Sums of activity by day and group, kept beside the decisions in SQLite and PostgreSQL: no page reads all decisions.

A row is the sums of one day over the entries of one group: of an ``axis`` (a `Grouping`; empty: all entries) and a
``name``. Whoever changes entries executes `statements` of the change in the same transaction, and lets no other writer
between reading the entries that he changes and that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from pegboard.activity_entries import (
    DAY_SECONDS,
    FIELDS,
    GROUPINGS,
    ActivityEntry,
    ActivityGroup,
    ActivityTotals,
    Grouping,
    summed,
    totals_of,
)
from pegboard.stores.sql.activity_rows import Statement

TOTALS = ActivityTotals._fields
FIRST_TOTALS = ("decisions", "errors", "failures", "searches", "tokens_before", "tokens_after", "billed", "saved")
"""The sums that the first migration made columns of."""
FIRST_SUMS = (
    "count(*), sum(CASE WHEN error <> '' THEN 1 ELSE 0 END), sum(failures), sum(searches), sum(tokens_before), "
    "sum(tokens_after), sum(billed), sum(saved)"
)
ALL = ""
"""The axis, and the name, of the sums over all entries."""
NONE = ActivityTotals()
TALK: Grouping = "conversation"
NAMED = tuple(axis for axis in GROUPINGS if axis not in {TALK, "tool"})
"""The axes of which an entry has one name, but for its conversation."""
_named = itemgetter(*map(FIELDS.index, NAMED))


@dataclass(frozen=True, slots=True, kw_only=True)
class SumDialect:
    """``mark`` is the placeholder of a value, ``called`` the names in the column of that name, as a table ``each``
    with one column ``value``, ``bytewise`` orders text as Python does."""

    mark: str
    called: str
    bytewise: str = ""

    def condition(self, axis: str) -> str:
        """Whether a row of activity is in the group of a name."""
        if axis == ALL:
            return f"{self.mark} = ''"
        if axis == "tool":
            return f"EXISTS (SELECT 1 FROM {self.called} WHERE each.value = {self.mark})"  # noqa: S608
        return f"{axis} = {self.mark}"


class SumKey(NamedTuple):
    """A row of sums."""

    axis: str
    name: str
    day: int


class TimeSpan(NamedTuple):
    """The times of the first and of the last entry, seconds since the epoch."""

    first: float
    last: float


FIRST_GONE = TimeSpan(-1e18, -1e18)
"""The span of a change at the beginning of sums, whenever that was."""
RENEWED = 50
"""Sums whose first entry is looked up at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumChanges:
    """What a change of entries does to sums: their differences, and the spans of entries that came and that went."""

    totals: dict[SumKey, ActivityTotals]
    came: dict[SumKey, TimeSpan]
    went: dict[SumKey, TimeSpan]

    def doubtful(self) -> Iterator[tuple[SumKey, TimeSpan]]:
        """The sums whose span may have become shorter, or that may be empty, and the span of what went."""
        for key, span in sorted(self.went.items()):
            if self.moved(key):
                yield key, span

    def moved(self, key: SumKey) -> bool:
        return self.came.get(key) != self.went.get(key)


class _Counted(NamedTuple):
    """The sums of some entries, and the times of the first and of the last one."""

    first: float
    last: float
    totals: ActivityTotals


def changes(went: Iterable[ActivityEntry], came: Iterable[ActivityEntry] = ()) -> SumChanges:
    gone, new = _grouped(went), _grouped(came)
    totals = {key: each.totals for key, each in new.items()}
    for key, each in gone.items():
        totals[key] = totals.get(key, NONE).minus(each.totals)
    return SumChanges(totals=totals, came=_spanned(new), went=_spanned(gone))


def _grouped(entries: Iterable[ActivityEntry]) -> dict[SumKey, _Counted]:
    """The sums that entries are part of. Those that differ by no more than their conversation are added up first: they
    are most of a batch, and in six groups or more."""
    alike, talks = defaultdict[Any, list[_Counted]](list), defaultdict[SumKey, list[_Counted]](list)
    for entry in entries:
        day, counted = entry.day, _Counted(entry.at, entry.at, totals_of(entry))
        alike[day, entry.called, *_named(entry)].append(counted)
        talks[SumKey(TALK, entry.conversation, day)].append(counted)
    groups = defaultdict[SumKey, list[_Counted]](list)
    for (day, called, *names), counts in alike.items():
        together = _added(counts)
        groups[SumKey(ALL, ALL, day)].append(together)
        of_tools = (("tool", tool) for tool in dict.fromkeys(called))
        for axis, name in (*zip(NAMED, names, strict=True), *of_tools):
            groups[SumKey(axis, name, day)].append(together)
    return {key: _added(counts) for group in (groups, talks) for key, counts in group.items()}


def _added(counts: Sequence[_Counted]) -> _Counted:
    if len(counts) == 1:
        return counts[0]
    firsts, lasts, totals = zip(*counts, strict=True)
    return _Counted(min(firsts), max(lasts), summed(totals))


def _spanned(groups: Mapping[SumKey, _Counted]) -> dict[SumKey, TimeSpan]:
    return {key: TimeSpan(first, last) for key, (first, last, _) in groups.items()}


def statements(
    found: SumChanges, dialect: SumDialect, *, spans: bool = True
) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
    """Statements, each with the values of its executions: add the differences, remove empty sums, and look up the
    first and the last entry of those that lost one of them. Without ``spans``, that is left to `renewed`."""
    mark = dialect.mark
    changed = sorted(key for key, totals in found.totals.items() if totals != NONE or found.moved(key))
    added = [(*key, *(found.came.get(key) or found.went[key]), *found.totals[key]) for key in changed]
    if added:
        yield _upsert(mark), added
    doubtful = list(found.doubtful())
    if doubtful:
        yield f"DELETE FROM activity_sums WHERE {_row(mark)} AND decisions = 0", [tuple(key) for key, _ in doubtful]  # noqa: S608
    if spans:
        yield from _looked_up(doubtful, dialect)


def outdated(before: float, mark: str) -> Statement:
    """The sums that say that their first entry is among those that were removed because they are not younger than a
    moment."""
    query = f"SELECT axis, name, day FROM activity_sums WHERE day = {mark} AND first <= {mark} ORDER BY axis, name"  # noqa: S608
    return query, [int(before // DAY_SECONDS), before]


def renewed(keys: Iterable[Sequence[Any]], dialect: SumDialect) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
    """Statements that look up the first entry of sums."""
    return _looked_up([(SumKey(*key), FIRST_GONE) for key in keys], dialect)


def by_day(since: int, mark: str) -> Statement:
    query = f"SELECT day, {', '.join(TOTALS)} FROM activity_sums WHERE axis = '' AND name = '' AND day >= {mark}"  # noqa: S608
    return f"{query} ORDER BY day", [since]


def by(grouping: Grouping, since: int, most: int, dialect: SumDialect) -> Statement:
    """The sums of each name of an axis since a day, the one with the latest entry first.

    The rows of the axis are read from the latest on, and each name is taken at its last day, so that as few rows are
    read as are shown.
    """
    mark, bytewise = dialect.mark, dialect.bytewise
    latest = (
        f"SELECT name FROM activity_sums AS ends WHERE axis = '{grouping}' AND day >= {mark} AND NOT EXISTS "  # noqa: S608
        "(SELECT 1 FROM activity_sums AS later WHERE later.axis = ends.axis AND later.name = ends.name "
        f"AND later.day > ends.day) ORDER BY last DESC, name{bytewise} LIMIT {int(most)}"
    )
    summed = ", ".join(f"sum(sums.{name})" for name in TOTALS)
    return (
        f"SELECT sums.name, min(sums.first), max(sums.last), {summed} FROM ({latest}) AS chosen "  # noqa: S608
        f"JOIN activity_sums AS sums ON sums.axis = '{grouping}' AND sums.name = chosen.name AND sums.day >= {mark} "
        f"GROUP BY sums.name ORDER BY max(sums.last) DESC, sums.name{bytewise}",
        [since, since],
    )


def days_from(rows: Iterable[Sequence[Any]]) -> list[tuple[int, ActivityTotals]]:
    return [(int(day), _totals(sums)) for day, *sums in rows]


def groups_from(rows: Iterable[Sequence[Any]]) -> list[ActivityGroup]:
    return [ActivityGroup(name=name, first=first, last=last, totals=_totals(sums)) for name, first, last, *sums in rows]


def table(whole: str, real: str, dialect: SumDialect, suffix: str = "") -> tuple[str, ...]:
    """The statements that create the table, and fill it from the decisions that are there."""
    numbers = ", ".join(f"{name} {whole} NOT NULL" for name in FIRST_TOTALS)
    into = f"INSERT INTO activity_sums (axis, name, day, first, last, {', '.join(FIRST_TOTALS)})"
    spans = f"min(at), max(at), {FIRST_SUMS}"
    columns = [axis for axis in GROUPINGS if axis != "tool"]
    return (
        f"CREATE TABLE activity_sums (axis text NOT NULL, name text NOT NULL, day {whole} NOT NULL, "
        f"first {real} NOT NULL, last {real} NOT NULL, {numbers}, PRIMARY KEY (axis, name, day)){suffix}",
        "CREATE INDEX latest_sums ON activity_sums (axis, last DESC, name)",
        f"{into} SELECT '', '', day, {spans} FROM activity GROUP BY day",  # noqa: S608
        *(f"{into} SELECT '{axis}', {axis}, day, {spans} FROM activity GROUP BY {axis}, day" for axis in columns),  # noqa: S608
        f"{into} SELECT 'tool', value, day, {spans} FROM (SELECT DISTINCT activity.*, each.value FROM activity, "  # noqa: S608
        f"{dialect.called}) AS calls GROUP BY value, day",
        "DROP INDEX activity_by_day",
        "DROP INDEX activity_by_time",
        "CREATE INDEX activity_by_time ON activity (at)",
        "CREATE INDEX failed_activity ON activity (at) WHERE error <> '' OR failures > 0",
        "CREATE INDEX activity_of_a_door ON activity (door, at)",
    )


def _looked_up(
    doubtful: Sequence[tuple[SumKey, TimeSpan]], dialect: SumDialect
) -> Iterator[tuple[str, Sequence[Sequence[Any]]]]:
    for axis in (ALL, *GROUPINGS):
        of_axis = [(key, span) for key, span in doubtful if key.axis == axis]
        if of_axis:
            yield _spans(axis, dialect), [_span_values(key, span) for key, span in of_axis]


def _totals(values: Sequence[Any]) -> ActivityTotals:
    return ActivityTotals(*map(int, values))


def _row(mark: str) -> str:
    return f"axis = {mark} AND name = {mark} AND day = {mark}"


def _upsert(mark: str) -> str:
    columns = ("axis", "name", "day", "first", "last", *TOTALS)
    summed = ", ".join(f"{name} = activity_sums.{name} + excluded.{name}" for name in TOTALS)
    return (
        f"INSERT INTO activity_sums ({', '.join(columns)}) VALUES ({', '.join([mark] * len(columns))}) "  # noqa: S608
        f"ON CONFLICT (axis, name, day) DO UPDATE SET {summed}, "
        "first = CASE WHEN excluded.first < activity_sums.first THEN excluded.first ELSE activity_sums.first END, "
        "last = CASE WHEN excluded.last > activity_sums.last THEN excluded.last ELSE activity_sums.last END"
    )


def _spans(axis: str, dialect: SumDialect) -> str:
    """Look up the first and the last entry of a row, each only if what went was at that end."""
    mark = dialect.mark
    of_group = f"FROM activity WHERE at >= {mark} AND at < {mark} AND {dialect.condition(axis)}"
    return (
        f"UPDATE activity_sums SET first = CASE WHEN first >= {mark} THEN (SELECT min(at) {of_group}) ELSE first END, "  # noqa: S608
        f"last = CASE WHEN last <= {mark} THEN (SELECT max(at) {of_group}) ELSE last END "
        f"WHERE {_row(mark)} AND (first >= {mark} OR last <= {mark})"
    )


def _span_values(key: SumKey, span: TimeSpan) -> tuple[Any, ...]:
    group = (float(key.day * DAY_SECONDS), float((key.day + 1) * DAY_SECONDS), key.name)
    return (span.first, *group, span.last, *group, *key, *span)
