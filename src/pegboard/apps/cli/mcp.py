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
    "Stand before one big server, with no configuration at all",
    "pegboard mcp -- npx -y @some/big-server",
)


def mcp(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="After --: the command of one server to stand before.", show_default=False),
    ] = None,
    config: Configs = None,
    profile: Profile = None,
    exposure: Annotated[
        Literal["auto", "eager", "static", "dynamic", "native"] | None,
        typer.Option(
            help="What the client is listed: all (eager, native), a search (static), and what it found (dynamic)."
        ),
    ] = None,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"] | None, typer.Option(help="How much is said on stderr.")
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Serve one MCP client on standard input and output, with every configured server behind it.

    Reads the files given with --config, else pegboard.toml in the current folder; or stands before the one server
    whose command follows --. Standard output belongs to the protocol; logs go to stderr.
    """
    from pegboard.apps.cli.configs import given, wrapped

    files = config or ([OWN_FILE] if OWN_FILE.is_file() else [])
    if not files and not command:
        raise ConfigError(
            f"No configuration was given, and there is no {OWN_FILE} here.",
            remedy="Name one with --config FILE, or give a server's command after --.",
        )
    logs.set_level(log_level and log_level.upper())
    servers = wrapped(command) if command else None
    configured = given([] if command and not config else files, servers=servers, profile=profile, exposure=exposure)
    for note in configured.notes:
        logs.OURS.warning(note)
    from pegboard.gateways.mcp import serve_stdio

    asyncio.run(serve_stdio(configured.settings))
