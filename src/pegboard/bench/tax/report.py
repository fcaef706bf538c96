"""The headline as tables for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

COLUMNS = ("first", "steady", "sent", "requests", "recall", "rho_t30")
WIDTH = 120


def show(tables: Mapping[str, Any]) -> None:
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for bed, methods in tables["methods"].items():
        about = tables["catalogs"][bed]
        made = Table(title=f"{bed}: {about['tools']} tools, {about['tokens']:,} tokens", title_justify="left")
        made.add_column("method")
        for column in COLUMNS:
            made.add_column(column, justify="right")
        for method, of in (methods | tables["peers"].get(bed, {})).items():
            made.add_row(method, *(_value(of.get(column)) for column in COLUMNS))
        console.print(made)


def _value(interval: list[float] | None) -> str:
    if interval is None:
        return ""
    return f"{interval[0]:,.0f}" if interval[0] >= 100 else f"{interval[0]:.3f}"
