"""`pegboard down`: stops what `pegboard up` started."""

from __future__ import annotations

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples

EXAMPLES = examples(
    "Stop the shared process and remove its service",
    "pegboard down",
)


def down(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Stop the process that `pegboard up` started, and remove its service. Clients then start servers of their own.

    A `pegboard serve` that was started otherwise is left alone. The configuration is not read.
    """
    from pegboard.apps.cli.output import print_json
    from pegboard.apps.cli.shared_process import SharedProcess, served_files

    shared = SharedProcess(files=served_files(config))
    stopped = shared.down()
    still = shared.url()
    if as_json:
        return print_json({"stopped": stopped, "still_runs": still})
    typer.echo(f"Stopped ({', '.join(stopped)})." if stopped else "Nothing was started by `pegboard up`.")
    if still:
        typer.echo(f"A `pegboard serve` that was started otherwise still runs at {still}.")
    return None
