"""`pegboard mcp`: the gateway on standard input and output."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Literal

import typer

from pegboard.apps.cli import logs
from pegboard.apps.cli.options import Configs, Json, Profile, Verbose, examples
from pegboard.errors import ConfigError

OWN_FILE = Path("pegboard.toml")

EXAMPLES = examples(
    "Keep the client's configuration as servers.json, and check it",
    "pegboard doctor --config servers.json",
    "Then give the client this one server in place of all of them",
    '{"mcpServers": {"pegboard": {"command": "pegboard",\n  "args": ["mcp", "--config", "/path/servers.json"]}}}',
)


def mcp(
    config: Configs = None,
    profile: Profile = None,
    exposure: Annotated[
        Literal["auto", "eager", "static"] | None,
        typer.Option(help="What the client is listed: all tools (eager), a search for them (static), or what fits."),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None, typer.Option(help="How much is said on stderr.")
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Serve one MCP client on standard input and output, with every configured server behind it.

    Reads the files given with --config, else pegboard.toml in the current folder. Standard output belongs to the
    protocol; logs go to stderr.
    """
    from pegboard.apps.cli.configs import given

    if not config and not OWN_FILE.is_file():
        raise ConfigError(
            f"No configuration was given, and there is no {OWN_FILE} here.", remedy="Name one with --config FILE."
        )
    logs.set_level(log_level and log_level.upper())
    configured = given(config or [OWN_FILE], profile=profile, exposure=exposure)
    for note in configured.notes:
        logs.OURS.warning(note)
    from pegboard.gateways.mcp import serve_stdio

    asyncio.run(serve_stdio(configured.settings))
