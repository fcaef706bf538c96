"""`pegboard mcp`: the gateway on standard input and output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlencode

import typer

from pegboard.apps.cli import stderr_log
from pegboard.apps.cli.event_loop import run
from pegboard.apps.cli.options import Configs, Exposure, Json, LogFormat, LogLevel, Profile, Verbose, examples
from pegboard.collector import importing
from pegboard.errors import ConfigError

EXAMPLES = examples(
    "An entry for the configuration of a client; `pegboard init` writes it for every client",
    '{"mcpServers": {"pegboard": {"command": "pegboard",\n  "args": ["mcp", "--config", "/path/pegboard.toml"]}}}',
    "Wrap one big server, without any configuration",
    "pegboard mcp -- npx -y @some/big-server",
)


def mcp(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="After --: the command of one server to wrap.", show_default=False),
    ] = None,
    config: Configs = None,
    profile: Profile = None,
    exposure: Exposure = None,
    toolset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the tools of this toolset of the configuration.")
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    no_attach: Annotated[
        bool, typer.Option("--no-attach", help="Start the servers here, even if `pegboard serve` already runs them.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Serve one MCP client on standard input and output, as a gateway to all configured servers.

    Reads the files given with --config, else pegboard.toml in the current folder if it starts and permits nothing or
    you have allowed it, else the user's own; or wraps the one server whose command follows --. If `pegboard serve` runs
    with the same files, its servers are used and none is started. Standard output is reserved for the protocol; logs go
    to stderr.
    """
    with importing():
        from pegboard.apps.cli.configs import Configured, given, own_files, own_files_allowed, why_refused, wrapped

    stderr_log.set_level(log_level and log_level.upper())
    may_attach = not (command or profile or no_attach)
    nearest = config or own_files()
    if may_attach and nearest and _attached(nearest, exposure, toolset):  # which starts and permits nothing
        return
    found = None if config or command else own_files_allowed()
    files = config or (list(found.files) if found else [])
    if not files and not command:
        raise nothing_given(", or give a server's command after --")
    if may_attach and files != nearest and _attached(files, exposure, toolset):
        return
    with importing():
        from pegboard.gateways.mcp import serve_stdio
        from pegboard.gateways.mcp.transport.config_reload import Source

    servers = wrapped(command) if command else None

    def read() -> Configured:
        for path in found.files if found else ():
            if why_refused(path):
                raise ConfigError(f"{str(path)!r} was changed by its project.", remedy="`--config` uses it.")
        return given(files, servers=servers, profile=profile, exposure=exposure, log_format=log_format)

    source = Source.of(files, lambda: read().settings)
    configured = read()
    stderr_log.set_format(configured.settings.log_format)
    for note in (*(found.notes if found else ()), *configured.notes):
        stderr_log.OURS.warning(note)
    wish = None if exposure == "auto" else exposure
    run(serve_stdio(configured.settings, source, toolset=toolset or "", exposure=wish))


def nothing_given(otherwise: str = "") -> ConfigError:
    from pegboard.settings.client_files import OWN_NAME, own_file

    return ConfigError(
        f"No configuration was given, and there is no {OWN_NAME} here or in {str(own_file().parent)!r}.",
        remedy=f"`pegboard init` makes one from your clients' files; or name one with --config FILE{otherwise}.",
    )


def _attached(files: Sequence[Path], exposure: str | None, toolset: str | None) -> bool:
    """Attach to a running `pegboard serve`; False if there is none. Raises PegboardError if it ends meanwhile."""
    from pegboard.gateways.mcp.attach.serve_discovery import running_folder, running_for

    url = running_for(files, running_folder())
    if url is None:
        return False
    with importing():
        from pegboard.gateways.mcp.attach.bridge import bridge_stdio

    stderr_log.OURS.info("Attached to the `pegboard serve` at %s; no server is started here.", url)
    url = f"{url}/{quote(toolset)}" if toolset else url
    run(bridge_stdio(f"{url}?{urlencode({'exposure': exposure})}" if exposure else url))
    return True
