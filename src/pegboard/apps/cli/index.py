"""`pegboard index`: the vectors of all tools, computed and stored before anybody asks."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from pegboard.apps.cli.options import Catalogs, Configs, Json, Profile, Verbose, examples

EXAMPLES = examples(
    "Embed the tools of all configured servers, so that the gateway starts warm",
    "pegboard index --config pegboard.toml",
    "Interrupted? The same command goes on where it stopped",
    "pegboard index --config pegboard.toml --batch 16",
)


def index(
    context: typer.Context,
    config: Configs = None,
    catalog: Catalogs = None,
    profile: Profile = None,
    batch: Annotated[
        int, typer.Option("--batch", min=1, help="Texts that are embedded and stored together: what a kill can cost.")
    ] = 64,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Embed every tool into the configured store of embeddings, and into the index where that is a server.

    What is there already is neither embedded nor sent again, so that an interrupted run is gone on with by the next.
    """
    from pegboard.apps.cli import indexed, output
    from pegboard.apps.cli.configs import given, given_or_usual

    configured = (given if catalog else given_or_usual)(config or [], profile=profile)
    outcome = asyncio.run(indexed.run(configured, catalog or [], context.obj, batch))
    if as_json:
        output.print_json(indexed.payload(outcome))
    else:
        indexed.show(outcome)
