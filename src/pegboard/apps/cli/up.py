"""`pegboard up`: one `pegboard serve` in the background, which all clients of this user share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from pegboard.apps.cli.shared_process import SharedProcess

EXAMPLES = examples(
    "Start it now and at every login; the clients that `pegboard init` set up use it from their next start",
    "pegboard up",
    "Only show the service's definition, and where it would be written",
    "pegboard up --print",
    "A plain process, until you log out",
    "pegboard up --manager process",
    "Stop it and remove the service",
    "pegboard down",
)
WAIT_SECONDS = 60.0
NAMES = ("systemd", "launchd", "task", "process")


def up(
    config: Configs = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 chooses a free one.")] = None,
    manager: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What runs it: systemd, launchd, task (Windows) or process; by default the session's own.",
        ),
    ] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the service's definition; write and start nothing.")
    ] = False,
    wait: Annotated[float, typer.Option(metavar="SECONDS", help="How long it may take to get ready.")] = WAIT_SECONDS,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run `pegboard serve` as a service of your session, so that all clients share one process and its servers.

    Each client still starts `pegboard mcp`, which finds the service and passes messages on. Without a service manager,
    as in a container, it is a plain process in the background. `pegboard doctor` says whether it runs.
    """
    from pegboard.apps.cli.shared_process import PROCESS, usual_manager

    shared = shared_process(config, port)
    if manager is not None and manager not in NAMES:
        raise ConfigError(f"There is no manager {manager!r}.", remedy=f"Known are {', '.join(NAMES)}.")
    chosen = manager or usual_manager()
    if only_print:
        return _print(shared, chosen, as_json=as_json)
    url = shared.url()
    runs_already = url is not None
    if url is None:
        shared.up(chosen)
        url = shared.wait(wait)
    file = "" if chosen == PROCESS or runs_already else str(shared.managers()[chosen].file)
    notes = [] if runs_already else _notes(shared, chosen)
    made = {"url": url, "ran_already": runs_already, "manager": chosen, "file": file, "notes": notes}
    _show(made | {"wants_tokens": _wants_tokens(shared)}, as_json=as_json)
    return None


def shared_process(config: list[Path] | None, port: int | None = None) -> SharedProcess:
    """The one for these files, else for the user's own file. Raises ConfigError if there is none or it is invalid."""
    from pegboard.apps.cli.mcp import nothing_given
    from pegboard.apps.cli.shared_process import SharedProcess, served_files
    from pegboard.settings import load_settings
    from pegboard.settings.client_files import own_file

    files = served_files(config)
    if not config and not own_file().is_file():
        raise nothing_given()
    load_settings(files)
    return SharedProcess(files=files, port=port)


def _notes(shared: SharedProcess, manager: str) -> list[str]:
    """What differs for servers from being started in a terminal."""
    from pegboard.apps.cli.shared_process import PROCESS
    from pegboard.settings import load_settings
    from pegboard.settings.server_spec import VARIABLE

    notes = []
    if _wants_tokens(shared):
        notes = ["It wants tokens of its callers: give clients its address and a token; `pegboard mcp` has none."]
    if manager == PROCESS:
        return [*notes, "It ends when you log out or the machine stops; `pegboard up` starts it again."]
    specs = load_settings(shared.files).servers.values()
    texts = [
        text for spec in specs for text in (*spec.args, *spec.env.values(), *spec.headers.values(), spec.url or "")
    ]
    needed = sorted({name for text in texts for name, default in VARIABLE.findall(text) if not default} - {"HOME"})
    return notes + [
        f"The service does not see this shell's variables, of which servers use {', '.join(needed)}: put them into "
        f"{shared.definition.env_file} (systemd), or write ${{keyring:NAME}} or ${{file:PATH}} instead."
    ] * bool(needed)


def _wants_tokens(shared: SharedProcess) -> bool:
    from pegboard.settings import load_settings

    settings = load_settings(shared.files)
    return bool(settings.access or settings.issuer)


def _print(shared: SharedProcess, manager: str, *, as_json: bool) -> None:
    from pegboard.apps.cli.output import print_json
    from pegboard.apps.cli.shared_process import PROCESS

    if manager == PROCESS:
        made: dict[str, Any] = {"manager": manager, "file": "", "text": " ".join(shared.definition.command) + "\n"}
    else:
        chosen = shared.managers()[manager]
        made = {"manager": manager, "file": str(chosen.file), "text": chosen.text}
    if as_json:
        print_json(made)
    else:
        typer.echo(made["text"], nl=False)
        typer.echo(f"For {made['file'] or 'a process in the background'}.", err=True)


def _show(made: dict[str, Any], *, as_json: bool) -> None:
    from pegboard.apps.cli.output import print_json

    if as_json:
        return print_json(made)
    typer.echo(f"{'It runs already' if made['ran_already'] else 'It runs'} at {made['url']}.")
    if made["file"]:
        typer.echo(f"Started by {made['manager']}, now and at every login: {made['file']}.")
    for note in made["notes"]:
        typer.echo(note)
    if not made["ran_already"]:
        used = "" if made["wants_tokens"] else "Clients use it from their next start. "
        typer.echo(f"{used}`pegboard down` stops it.")
    return None
