"""What is in a store, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from pegboard.apps.cli.output import cells, stdout, table
from pegboard.spending import NanoUsd, dollars, nano_usd

WORDS = {
    "session": ("session", "sessions"),
    "statistics": ("tool with statistics", "tools with statistics"),
    "lesson": ("lesson from conversations", "lessons from conversations"),
    "meter": ("meter of spending", "meters of spending"),
    "hold": ("amount held back", "amounts held back"),
    "pin": ("pin", "pins"),
    "embedding": ("embedding", "embeddings"),
    "definition": ("listing of a server", "listings of servers"),
}


def counted(counts: Mapping[Any, int]) -> str:
    """
    >>> counted({"session": 1, "pin": 2_000, "hold": 0})
    '1 session, 2,000 pins'
    """
    said = [f"{count:,} {WORDS[kind][count != 1]}" for kind, count in counts.items() if count]
    return ", ".join(said) or "nothing"


def show(found: Mapping[str, Any], tables: Sequence[str]) -> None:
    console = stdout()
    console.print(_summary(found))
    made = {"statistics": _statistics, "lessons": _lessons, "pins": _pins, "spend": _spend}
    for name in tables:
        console.print()
        console.print(made[name](found[name]))


def _summary(found: Mapping[str, Any]) -> Table:
    made = table("", "state", "")
    spent, replicas = found["spent_usd"], found["replicas"]
    made.add_row(*cells("kept in", f"{found['backend']} {found['version']}, {found['place']}"))
    made.add_row(*cells("takes", f"{found['bytes'] / 1e6:,.1f} MB"))
    made.add_row(*cells("migrations", ", ".join(found["migrations"])))
    for kind, count in found["counts"].items():
        changed = f", {found['pins_changed']:,} of them changed" if kind == "pin" and count else ""
        made.add_row(*cells(WORDS[kind][1], f"{count:,}{changed}"))
    made.add_row(*cells("spent today", dollars(nano_usd(spent["today"]))))
    made.add_row(*cells("spent in all", dollars(nano_usd(spent["in_all"]))))
    if replicas is not None:
        made.add_row(*cells("replicas alive", replicas))
    return made


def _statistics(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Statistics", "tool", ">calls", ">succeeded", ">r", ">σ²", ">p_fail", ">L, s", "last called")
    for row in rows:
        averages = (f"{row[name]:.3f}" for name in ("success", "variance", "failure", "latency"))
        name = f"{row['server']}/{row['name']}" if row["name"] else f"{row['server']}, all of it"
        made.add_row(*cells(name, f"{row['calls']:,}", f"{row['successes']:,}", *averages, _date(row["used"])))
    return made


def _lessons(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Lessons", "key", ">conversations", ">turns each", ">tokens a turn", ">with news", "last added to")
    for row in rows:
        counts, later = (f"{row['conversations']:,.0f}", _mean(row["requests"], row["conversations"])), row["later"]
        news = f"{row['changed'] / later:.0%}" if later else ""
        made.add_row(*cells(row["key"][:12], *counts, _mean(row["growth"], later), news, _date(row["used"])))
    return made


def _pins(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Pins", "tool", "approved", "seen last")
    for row in rows:
        seen = "the same" if row["seen"] == row["approved"] else row["seen"][:12]
        made.add_row(*cells(f"{row['server']}/{row['name']}", row["approved"][:12], seen))
    return made


def _spend(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Spending", "by", "name", ">spent", "last")
    for row in rows:
        last = "" if row["used"] is None else _date(row["used"])
        made.add_row(*cells(row["kind"], row["name"], dollars(NanoUsd(row["spent"])), last))
    return made


def _mean(total: float, count: float) -> str:
    return f"{total / count:,.1f}" if count else ""


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
