"""`pegboard audit`: the bill."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Verbose, examples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pegboard.apps.cli.audited import Audit
    from pegboard.apps.cli.configs import Configured
    from pegboard.apps.cli.tax import Price

EXAMPLES = examples(
    "What do the servers of my MCP clients cost?",
    "pegboard audit",
    "Only these servers, at 15 USD per million tokens",
    "pegboard audit --config .mcp.json --price 15",
    "Tools in a file, for a program to read",
    "pegboard audit --catalog tools.json --json",
)


def audit(
    config: Configs = None,
    catalog: Catalogs = None,
    price: Annotated[float, typer.Option("--price", min=0, help="USD per million input tokens.")] = 3.0,
    cache_read: Annotated[
        float, typer.Option("--cache-read", min=0, help="What a token read from the prompt cache costs, in prices.")
    ] = 0.1,
    cache_write: Annotated[
        float, typer.Option("--cache-write", min=0, help="What a token written to the prompt cache costs, in prices.")
    ] = 1.25,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show what tool definitions cost, per server: the tokens that every request carries, and their price.

    Without --config and --catalog the usual files of MCP clients are read. A session has 30 turns; with a prompt cache
    its first turn writes the definitions and the others read them. Beside it stands what Pegboard would send instead,
    its own tools counted.
    """
    from pegboard.apps.cli import audited, output
    from pegboard.apps.cli.configs import Configured, given_or_usual
    from pegboard.apps.cli.tax import Price
    from pegboard.settings import load_settings

    configured = Configured(settings=load_settings()) if catalog and not config else given_or_usual(config or [])
    made = asyncio.run(_audit(configured, catalog or [], Price(input=price, read=cache_read, write=cache_write)))
    if as_json:
        output.print_json(audited.payload(made))
    else:
        audited.show(made)
    if not made.total.tools:
        raise typer.Exit(1)


async def _audit(configured: Configured, catalogs: Sequence[Path], price: Price) -> Audit:
    from pegboard.apps.cli.audited import Audit
    from pegboard.apps.cli.exposed import exposed
    from pegboard.apps.cli.sources import load
    from pegboard.apps.cli.tax import taxes

    loaded = await load(configured, catalogs)
    return Audit(
        taxes=taxes(loaded.catalog),
        exposed=await exposed(loaded.catalog, configured.settings),
        price=price,
        loaded=loaded,
    )
