"""What a gateway did, cost and saved over some days, as sums by day and by group."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pegboard.activity_entries import DAY_SECONDS, ActivityGroup, ActivityTotals, Grouping, summed
from pegboard.protocols import Activity

GROUPED: tuple[Grouping, ...] = ("model", "key", "client", "tool", "conversation", "door")
MOST_GROUPS = 10_000
"""Groups that are read of each kind, those used last; the dearest of them are reported."""
COLUMNS = (
    *("decisions", "errors", "failures", "searches", "tokens_before", "tokens_after", "input_tokens"),
    *("cached_tokens", "written_tokens", "output_tokens", "unpriced"),
)
MONEY = ("cost", "billed", "saved")
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet would compute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityReport:
    """``days`` are all days from the first to the last one, and ``groups`` those of each kind, the dearest first."""

    days: Sequence[tuple[str, ActivityTotals]]
    groups: Mapping[Grouping, Sequence[ActivityGroup]]

    @property
    def totals(self) -> ActivityTotals:
        return summed(each for _, each in self.days)

    def named(self, kind: Grouping) -> list[tuple[str, ActivityTotals]]:
        return [(each.name, each.totals) for each in self.groups[kind]]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each day and each group, with amounts in US dollars."""
        of_days = [_row("day", name, totals) for name, totals in self.days]
        of_groups = [_row(kind, each.name, each.totals) for kind, found in self.groups.items() for each in found]
        return [*of_days, *of_groups]

    def as_csv(self) -> str:
        rows, file = self.rows(), io.StringIO()
        writer = csv.DictWriter(file, ["by", "name", *COLUMNS, *(f"{name}_usd" for name in MONEY)])
        writer.writeheader()
        writer.writerows(row | {"name": cell(row["name"])} for row in rows)
        return file.getvalue()


async def activity_report(store: Activity, first: int, last: int, most: int) -> ActivityReport:
    """The report of the days ``first`` to ``last`` (since the epoch, UTC), with at most ``most`` groups of each kind.

    Groups are summed up to the newest entry: ``last`` is meant to be today.
    """
    kept = dict(await store.by_day(first))
    groups = {kind: await store.by(kind, first, MOST_GROUPS) for kind in GROUPED}
    return ActivityReport(
        days=[(day_name(day), kept.get(day, ActivityTotals())) for day in range(first, last + 1)],
        groups={
            kind: sorted((each for each in found if each.name), key=_dearest)[:most] for kind, found in groups.items()
        },
    )


def day_name(day: int) -> str:
    """
    >>> day_name(1)
    '1970-01-02'
    """
    return datetime.fromtimestamp(day * DAY_SECONDS, UTC).strftime("%Y-%m-%d")


def when(at: float) -> str:
    """
    >>> when(0.0)
    '1970-01-01 00:00:00'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def cell(text: str) -> str:
    """A text as a spreadsheet should show it.

    >>> cell("=1+1"), cell("ann")
    ("'=1+1", 'ann')
    """
    return f"'{text}" if text.startswith(FORMULAS) else text


def _dearest(group: ActivityGroup) -> tuple[int, int, int, str]:
    totals = group.totals
    return -totals.cost, -totals.saved, -totals.decisions, group.name


def _row(by: str, name: str, totals: ActivityTotals) -> dict[str, Any]:
    counts = {column: getattr(totals, column) for column in COLUMNS}
    return {"by": by, "name": name, **counts} | {f"{each}_usd": _usd(getattr(totals, each)) for each in MONEY}


def _usd(nano: int) -> str:
    return f"{Decimal(nano).scaleb(-9).normalize():f}"
