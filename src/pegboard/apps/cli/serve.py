"""`pegboard serve`: the gateway on HTTP, for many clients."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from typing import Annotated

import typer

from pegboard.apps.cli import logs
from pegboard.apps.cli.options import Configs, Exposure, Json, LogLevel, Profile, Verbose, examples

EXAMPLES = examples(
    "One board for every client on this machine",
    "pegboard serve --config servers.json",
    "What to give to a client that speaks HTTP",
    '{"mcpServers": {"pegboard": {"url": "http://127.0.0.1:7332/mcp"}}}',
    "The same for one that does not list its tools again when it is told",
    '{"mcpServers": {"pegboard": {"url": "http://127.0.0.1:7332/mcp?exposure=static"}}}',
)


def serve(
    config: Configs = None,
    host: Annotated[
        str | None,
        typer.Option(help="Address to listen on: 0.0.0.0 for other machines too, which allowed_hosts lets in."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one.")] = None,
    profile: Profile = None,
    exposure: Exposure = None,
    log_level: LogLevel = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Serve many MCP clients on streamable HTTP, with every configured server behind it, started once.

    The board is at /mcp, a toolset at /mcp/NAME; /healthz says how the servers are. Sessions are kept in a file: after
    a restart they go on. Ends with SIGTERM or Ctrl-C, and every server with it.
    """
    from pegboard.apps.cli.configs import given, own_files
    from pegboard.apps.cli.mcp import nothing_given
    from pegboard.gateways.mcp.reload import Source
    from pegboard.gateways.mcp.serve import serve_http

    files = config or own_files()
    if not files:
        raise nothing_given()
    logs.set_level((log_level or "info").upper())
    read = partial(given, files, profile=profile, exposure=exposure, host=host, port=port)
    source = Source.of(files, lambda: read().settings)
    configured = read()
    for note in configured.notes:
        logs.OURS.warning(note)

    def started(url: str) -> None:
        if as_json:
            sys.stdout.write(json.dumps({"url": url}) + "\n")
            sys.stdout.flush()
        logs.OURS.info("Serving MCP at %s", url)

    asyncio.run(serve_http(configured.settings, source, started=started))
