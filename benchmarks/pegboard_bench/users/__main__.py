"""`python -m pegboard_bench.users` writes `bench/results/users.json`: 200 users × 20 calls with tokens of their own
through one `pegboard serve`, beside the same calls through one without users, and through two that share a store.

Every user's token is exchanged (RFC 8693), and the server checks the token of each call and answers with its subject.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table

from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.state.stores import cleaned
from pegboard_bench.users.calls import Figures, in_turns, round_robin
from pegboard_bench.users.gateways import gateways

REPLICAS = 2
STDERR = Console(stderr=True)


def main(
    users: Annotated[int, typer.Option(help="Users.")] = 200,
    calls: Annotated[int, typer.Option(help="Calls of each.")] = 20,
    redis: Annotated[str, typer.Option(help="The store of two processes; empty: not.")] = "redis://127.0.0.1:6379/0",
    postgres: Annotated[
        str, typer.Option(help="The store of two processes; empty: not.")
    ] = "postgresql://postgres@127.0.0.1:5432/test",
    out: Annotated[Path, typer.Option(help="Folder for users.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
) -> None:
    """Users with tokens of their own: what they cost in one process, and whether one is ever taken for another."""
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder, gateways(Path(folder), users) as made:
        figures = asyncio.run(in_turns(made, calls))
    for store, address in {"redis": redis, "postgres": postgres}.items():
        if address:
            figures |= replicas(store, {"url": address, "prefix": f"users_{uuid4().hex[:8]}"}, users, calls)
    path = results.write("users", command="make bench-users", seed=0, figures=figures, tables={}, folder=out)
    Console(width=None if sys.stdout.isatty() else 120).print(_shown(figures))
    STDERR.print(f"Written to {path}")
    if page is not None:
        write_page(page, out)
        STDERR.print(f"Written to {page}")


def replicas(store: str, state: Mapping[str, str], users: int, calls: int) -> Figures:
    """What came of the calls of all users through two processes on this store."""
    with (
        tempfile.TemporaryDirectory(prefix="pegboard-bench-") as folder,
        gateways(Path(folder), users, replicas=REPLICAS, state=state) as made,
    ):
        seen = asyncio.run(round_robin(made, calls))
    asyncio.run(cleaned(state["url"], state["prefix"]))
    return seen.figures(f"two_replicas_{store}")


def _shown(figures: Figures) -> Table:
    table = Table(title="users with tokens of their own", title_justify="left")
    table.add_column("figure")
    table.add_column("value", justify="right")
    for name, value in sorted(figures.items()):
        table.add_row(name, f"{value:,.2f}")
    return table


if __name__ == "__main__":
    typer.run(main)
