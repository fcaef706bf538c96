"""`pegboard ui`: the dashboard over the state of this machine, in a browser."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from pegboard.apps.cli import stderr_log
from pegboard.apps.cli.browser import open_page
from pegboard.apps.cli.event_loop import run
from pegboard.apps.cli.options import Configs, Json, Verbose, examples

EXAMPLES = examples(
    "See what the gateways of this machine have kept, and approve what has changed",
    "pegboard ui --open",
    "Of another configuration, on a port of its own",
    "pegboard ui --config servers.toml --port 8090",
)


def ui(
    config: Configs = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 chooses a free one.")] = 0,
    opens: Annotated[bool, typer.Option("--open", help="Open the address in the browser.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show the dashboard over the state of this machine, without `pegboard serve`.

    It listens on 127.0.0.1 alone. The address that it prints opens the dashboard once: after that, only the browser
    that used it sees the pages, until Ctrl-C ends them. Decisions are there if gateways keep them with
    `[activity] keep = "store"`.
    """
    from pegboard.apps.cli.configs import given, own_files_agreed
    from pegboard.gateways.dashboard.local_dashboard import local_settings, serve_dashboard

    settings = local_settings(given(config or own_files_agreed(starts=True)).settings, port)

    def started(url: str) -> None:
        sys.stdout.write((json.dumps({"url": url}) if as_json else f"The dashboard is at {url}") + "\n")
        sys.stdout.flush()
        if opens:
            open_page(url, 0)

    stderr_log.set_level("WARNING")
    run(serve_dashboard(settings, started=started))
