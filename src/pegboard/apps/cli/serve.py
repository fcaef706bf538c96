"""`pegboard serve`: runs the gateway on HTTP, for many clients."""

from __future__ import annotations

import ctypes
import json
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli import stderr_log
from pegboard.apps.cli.event_loop import run
from pegboard.apps.cli.options import Configs, Exposure, Json, LogFormat, LogLevel, Profile, Verbose, examples
from pegboard.collector import importing

if TYPE_CHECKING:
    from pegboard.settings import Settings

EXAMPLES = examples(
    "One board for every client on this machine",
    "pegboard serve --config servers.json",
    "The entry for a client that uses HTTP",
    '{"mcpServers": {"pegboard": {"url": "http://127.0.0.1:7332/mcp"}}}',
    "The same for a client that ignores list_changed notifications",
    '{"mcpServers": {"pegboard": {"url": "http://127.0.0.1:7332/mcp?exposure=static"}}}',
)
M_ARENA_MAX = -8
"""Parameter of glibc's mallopt(3)."""
ARENAS = 2


def serve(
    config: Configs = None,
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; 0.0.0.0 for other machines too, whose host names allowed_hosts must list."
        ),
    ] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 chooses a free one.")] = None,
    profile: Profile = None,
    exposure: Exposure = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Serve many MCP clients on streamable HTTP, as a gateway to all configured servers, started once.

    Reads the files given with --config, else pegboard.toml in the current folder if it starts and permits nothing or
    you have allowed it, else the user's own.
    The board is at /mcp, a toolset at /mcp/NAME. /healthz reports the state of the servers, /readyz whether requests
    are accepted, /metrics Prometheus metrics. Sessions are stored and continue after a restart. On SIGTERM or Ctrl-C it
    stops its servers and exits when the models' answers in progress have ended; on a second one, at once.
    """
    with importing():
        from pegboard.apps.cli.configs import given, own_files_agreed
        from pegboard.apps.cli.mcp import nothing_given
        from pegboard.gateways.mcp.transport.config_reload import Source
        from pegboard.gateways.serve import serve_http

    files = config or own_files_agreed(starts=True)
    if not files:
        raise nothing_given()
    stderr_log.set_level((log_level or "info").upper())
    read = partial(given, files, profile=profile, exposure=exposure, host=host, port=port, log_format=log_format)

    def read_again() -> Settings:
        """A file that was allowed and has changed is to be allowed again, for which nobody can be asked here."""
        if not config:
            own_files_agreed(starts=True, asks=False)
        return read().settings

    source = Source.of(files, read_again)
    configured = read()
    stderr_log.set_format(configured.settings.log_format)
    for note in configured.notes:
        stderr_log.OURS.warning(note)

    def started(url: str) -> None:
        if as_json:
            sys.stdout.write(json.dumps({"url": url}) + "\n")
            sys.stdout.flush()
        stderr_log.OURS.info("Serving MCP at %s", url)

    _keep_little()
    run(serve_http(configured.settings, source, started=started))


def _keep_little() -> None:
    """Limit glibc's malloc arenas: 10 to 20 MB less memory after load, without loss of speed.

    Does nothing on systems without glibc.
    """
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)
