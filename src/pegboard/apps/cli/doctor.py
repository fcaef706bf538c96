"""`pegboard doctor`: is everything in order, and if not, what to do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pegboard.apps.cli.checks import Check

EXAMPLES = examples(
    "Everything that can be checked on this machine",
    "pegboard doctor",
    "Before a configuration goes to pegboard mcp",
    "pegboard doctor --config servers.json",
)

COLORS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Check configuration files, every server, the encoder, the embedding cache, the store of state, and versions.

    Exits with 1 if something fails. A warning is something that can stay as it is.
    """
    from pegboard.apps.cli import output

    checks = asyncio.run(_examine(config or []))
    failed = any(check.status == "fail" for check in checks)
    if as_json:
        output.print_json({"ok": not failed, "checks": [check.as_dict() for check in checks]})
    else:
        _show(checks)
    if failed:
        raise typer.Exit(1)


async def _examine(files: Sequence[Path]) -> list[Check]:
    from pegboard.apps.cli import checks
    from pegboard.settings import load_settings

    found, configured = checks.configurations(files)
    every = [*checks.versions(), *found]
    if configured is not None:
        every += [
            *checks.profile(configured.settings),
            *checks.models(configured.settings),
            *await checks.servers(configured),
        ]
    settings = configured.settings if configured else load_settings()
    return [*every, *await checks.encoder(settings), *await checks.cache(settings), *await checks.state(settings)]


def _show(checks: Sequence[Check]) -> None:
    from pegboard.apps.cli.output import cells, plain, stdout, table

    made = table("", "", "check", "finding", "what to do")
    for check in checks:
        status = plain(check.status)
        status.stylize(COLORS[check.status])
        made.add_row(status, *cells(check.name, check.detail, check.remedy))
    stdout().print(made)
