"""The headline as tables for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

LIVE = ("prompt_tokens", "offered", "right", "refused", "seconds")
COLUMNS = ("first", "steady", "sent", "requests", "recall", "rho_t30")
WIDTH = 120


def show(tables: Mapping[str, Any]) -> None:
    """Of `tax.json` or `live.json`."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for bed, methods in tables.get("methods", {}).items():
        about = tables["catalogs"][bed]
        title = f"{bed}: {about['tools']} tools, {about['tokens']:,} tokens"
        console.print(_table(title, COLUMNS, methods | tables["peers"].get(bed, {})))
    for bed, methods in tables.get("testbeds", {}).items():
        console.print(_table(f"{bed}, {tables['model']}", LIVE, methods))


def _table(title: str, columns: Sequence[str], methods: Mapping[str, Any]) -> Table:
    made = Table(title=title, title_justify="left")
    made.add_column("method")
    for column in columns:
        made.add_column(column, justify="right")
    for method, of in methods.items():
        made.add_row(method, *(_value(of.get(column)) for column in columns))
    return made


def _value(of: Sequence[float] | float | None) -> str:
    """A number, or the first of an interval."""
    if of is None:
        return ""
    value = of if isinstance(of, float | int) else of[0]
    return f"{value:,.0f}" if value >= 100 else f"{value:.3f}"
