"""`pegboard report`: what the gateway did, cost and saved, for a terminal, a browser or a spreadsheet."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from pegboard.activity_entries import DAY_SECONDS, ActivityQuery, ActivityTotals
from pegboard.activity_export import FORMATS, decisions
from pegboard.activity_report import GROUPED, ActivityReport, activity_report
from pegboard.apps.cli.atomic_files import staged
from pegboard.apps.cli.configs import own_files_agreed
from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError
from pegboard.gateways.dashboard.page_templates import PageTemplates
from pegboard.protocols import Activity
from pegboard.settings import load_settings
from pegboard.spend_limits import NanoUsd, dollars
from pegboard.stores.state import open_state

EXAMPLES = examples(
    "The last seven days",
    "pegboard report",
    "A page for the others, and a table for a spreadsheet",
    "pegboard report --since 30d --html november.html --csv november.csv",
    "Each decision, for an analysis",
    "pegboard report --since 30d --decisions november.parquet",
)
AGO = re.compile(r"(\d{1,5})([dw])")
LONGEST_DAYS = 3_660
SHOWN = 10


def report(
    config: Configs = None,
    since: Annotated[
        str, typer.Option(metavar="DAYS", help="The first day: 7d, 4w or 2026-11-01. Days are UTC, today included.")
    ] = "7d",
    top: Annotated[int, typer.Option(min=1, max=10_000, help="Rows of each kind, the dearest first.")] = SHOWN,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML file.")] = None,
    as_csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write it as CSV.")] = None,
    each: Annotated[
        Path | None,
        typer.Option("--decisions", metavar="FILE", help="Write each decision, as CSV or to FILE.parquet as Parquet."),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what was decided, what models cost, and what was saved, by day, model, key, client, tool and conversation.

    It reads the activity that `pegboard serve` keeps with `[activity] keep = "store"`. A request that called two tools
    counts for both of them.
    """
    today = int(SYSTEM_CLOCK.time() // DAY_SECONDS)
    first = _first(since, today)
    if each is not None:
        asyncio.run(_write_decisions(config, first, each))
        if html is None and as_csv is None and not as_json:
            return
    found = asyncio.run(_read(config, first, today, top))
    if html is not None:
        _write(html, _page(found))
    if as_csv is not None:
        _write(as_csv, found.as_csv())
    if as_json:
        print_json({"since": found.days[0][0], "rows": found.rows()})
    elif html is None and as_csv is None:
        _show(found)


async def _read(files: Sequence[Path] | None, first: int, last: int, top: int) -> ActivityReport:
    async with _store(files) as store:
        return await activity_report(store, first, last, top)


async def _write_decisions(files: Sequence[Path] | None, first: int, path: Path) -> None:
    async with _store(files) as store:
        pages = decisions(store, ActivityQuery(since=float(first * DAY_SECONDS)))
        pieces = FORMATS["parquet" if path.suffix == ".parquet" else "csv"][1](pages)
        with staged(path) as file:
            async for piece in pieces:
                file.write(piece)


@asynccontextmanager
async def _store(files: Sequence[Path] | None) -> AsyncIterator[Activity]:
    """Raises ConfigError if activity is in no store."""
    settings = load_settings(files or own_files_agreed())
    if settings.activity.keep != "store":
        raise ConfigError(
            f"Activity is not in a store: [activity] keep is {settings.activity.keep!r}.",
            remedy='Set it to "store" and start `pegboard serve` again; what is in its memory is on the page /ui.',
        )
    state = open_state(settings, SYSTEM_CLOCK)
    try:
        if state.activity is None:
            raise ConfigError("This store keeps no activity.", remedy="Keep state in PostgreSQL or in files.")
        yield state.activity
    finally:
        await state.close()


def _first(since: str, today: int) -> int:
    """The first day. Raises ConfigError."""
    ago = AGO.fullmatch(since)
    if ago and 0 < int(ago[1]) * (7 if ago[2] == "w" else 1) <= LONGEST_DAYS:
        return today - int(ago[1]) * (7 if ago[2] == "w" else 1) + 1
    try:
        day = int(datetime.combine(date.fromisoformat(since), datetime.min.time(), UTC).timestamp() // DAY_SECONDS)
    except ValueError:
        day = -1
    if not today - LONGEST_DAYS <= day <= today:
        raise ConfigError(
            f"--since {since!r} is neither a number of days nor a day until today.",
            remedy="Write it as 7d, 4w or 2026-11-01.",
        )
    return day


def _show(found: ActivityReport) -> None:
    console = stdout()
    columns = (">decisions", ">errors", ">input", ">cached", ">output", ">cost", ">no cost", ">tokens saved", ">saved")
    parts = [("day", [(name, totals) for name, totals in found.days if totals.decisions])]
    parts += [(kind, found.named(kind)) for kind in GROUPED]
    for kind, rows in parts:
        if rows:
            made = table("", kind, *columns)
            for name, totals in rows:
                made.add_row(*cells(name, *_figures(totals)))
            console.print(made)
            console.print()
    if not found.totals.decisions:
        console.print(plain("Nothing was decided in these days."))
        return
    console.print(plain(f"In all: {found.totals.decisions:,} decisions, {_money(found.totals)}."))


def _figures(totals: ActivityTotals) -> list[str]:
    counts = (totals.decisions, totals.errors, totals.input_tokens, totals.cached_tokens, totals.output_tokens)
    return [
        *(f"{each:,}" for each in counts),
        dollars(NanoUsd(totals.cost)),
        f"{totals.unpriced:,}",
        f"{totals.tokens_saved:,}",
        dollars(NanoUsd(totals.saved)),
    ]


def _money(totals: ActivityTotals) -> str:
    unknown = f" and {totals.unpriced:,} requests without a known price" if totals.unpriced else ""
    return f"{dollars(NanoUsd(totals.cost))} for models{unknown}, {dollars(NanoUsd(totals.saved))} saved"


def _page(found: ActivityReport) -> str:
    """Raises ConfigError if Jinja2 is not installed."""
    pages = PageTemplates()
    values = {"report": found, "style": pages.static["style.css"].decode()}
    return pages.render("report.html", values)


def _write(path: Path, text: str) -> None:
    """Raises ConfigError."""
    with staged(path) as file:
        file.write(text.encode())
