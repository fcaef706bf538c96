"""`python -m pegboard_bench.conformance` writes `bench/results/conformance.json`: the protocol's test suite."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from pegboard_bench import results
from pegboard_bench.conformance.client import SIDES
from pegboard_bench.conformance.page import page as made_page
from pegboard_bench.conformance.sides import Subject, subjects
from pegboard_bench.conformance.suite import Checked, Suite, lost, passed

SEED = 0
"""Nothing here is drawn by chance."""
TRANSPORTS = ("stdio", "http")
STDERR = Console(stderr=True)


def main(
    suite: Annotated[Path, typer.Option(help="The suite; installed by scripts/install_clients.py.")] = Path(
        ".demo/clients/conformance"
    ),
    servers: Annotated[Path, typer.Option(help="Servers from npm; installed by scripts/install_servers.py.")] = Path(
        ".demo/npm"
    ),
    out: Annotated[Path, typer.Option(help="Folder for conformance.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as this page too.")] = None,
) -> None:
    """Run the protocol's own test suite against servers and against the gateway before each of them.

    Ends with 1 where the gateway fails what its server passes.
    """
    installed = Suite(suite)
    if not installed.installed:
        STDERR.print(f"There is no suite in {suite}: python scripts/install_clients.py")
        raise typer.Exit(2)
    found = asyncio.run(checked(installed, subjects(servers)))
    as_client = asyncio.run(checked_client(installed))
    figures: dict[str, float] = {}
    missing: list[str] = []
    missing += [f"client half: {each}" for each in lost(as_client["direct"], as_client["gateway"])]
    figures |= {f"passed/client/{side}": passed(statuses) for side, statuses in as_client.items()}
    figures["lost/client/gateway"] = len(missing)
    for server, sides in found.items():
        for side, statuses in sides.items():
            gone = lost(sides["direct"], statuses)
            figures |= {f"passed/{server}/{side}": passed(statuses), f"lost/{server}/{side}": len(gone)}
            missing += [f"{server}, {side}: {each}" for each in gone]
    tables: dict[str, Any] = {"suite": installed.version, "checks": found, "client": as_client}
    path = results.write(
        "conformance", command="make conformance", seed=SEED, figures=figures, tables=tables, folder=out
    )
    if page is not None:
        page.write_text(made_page(results.read(path)), "utf-8")
    table = Table(title="checks passed", title_justify="left")
    for column in ("server", *("direct", *TRANSPORTS)):
        table.add_column(column)
    for server, sides in found.items():
        table.add_row(server, *(str(passed(statuses)) for statuses in sides.values()))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    for each in missing:
        STDERR.print(f"Lost: {each}")
    STDERR.print(f"Written to {path}")
    raise typer.Exit(1 if missing else 0)


async def checked(suite: Suite, servers: Sequence[Subject]) -> dict[str, dict[str, Checked]]:
    """What the suite says of each server: by itself (`direct`), and behind the gateway on each transport."""
    found: dict[str, dict[str, Checked]] = {}
    with tempfile.TemporaryDirectory(prefix="pegboard-conformance-") as folder:
        for subject in servers:
            async with subject.alone() as url:
                sides = {"direct": await suite.run(url)}
            for transport in TRANSPORTS:
                async with subject.behind(transport, Path(folder) / subject.name / transport) as url:
                    sides[transport] = await suite.run(url)
            found[subject.name] = sides
    return found


async def checked_client(suite: Suite) -> dict[str, Checked]:
    """What the suite says of a client by itself, and of the same client with the gateway between."""
    return {side: await suite.run_client(side) for side in SIDES}


if __name__ == "__main__":
    typer.run(main)
