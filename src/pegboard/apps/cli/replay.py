"""`pegboard replay`: recorded requests through another configuration."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples

EXAMPLES = examples(
    "What would a smaller k have removed, and which calls would that have cost?",
    "pegboard replay turns.jsonl --config smaller.toml",
    "The same for a program to read",
    "pegboard replay turns.jsonl.gz --config smaller.toml --json",
)


def replay(
    context: typer.Context,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="What the gateway wrote to llm.record; also .gz.")],
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run recorded requests through the filters of a configuration, and compare what each keeps.

    No model is asked. Of the configuration that was in force when the requests were recorded, and of this one, it says
    what is kept, how many tokens that is, and the recall: the share of the models' calls whose tool is kept. The
    difference has a 95% interval. Lines that cannot be read are named and skipped.
    """
    from pegboard.apps.cli import compared, logs, output, replayed
    from pegboard.apps.cli.configs import own_files
    from pegboard.settings import load_settings

    logs.set_level(None)
    outcome = asyncio.run(replayed.run(log, load_settings(config or own_files()), context.obj))
    if as_json:
        output.print_json(compared.payload(outcome))
    else:
        compared.show(outcome)
