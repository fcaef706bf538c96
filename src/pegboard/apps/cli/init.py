"""`pegboard init`: the servers of all clients into one pegboard.toml, and one entry for each client."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Json, Verbose, examples
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.apps.cli.adopt import Adoption
    from pegboard.apps.cli.restore import Restoration

EXAMPLES = examples(
    "What would be written, and where",
    "pegboard init",
    "Do it: every file is kept beside it as NAME.before-pegboard",
    "pegboard init --write",
    "Cursor alone, into a file of its own",
    "pegboard init --client cursor --to ~/cursor-servers.toml --write",
    "As it was before",
    "pegboard init --undo",
)


def init(
    write: Annotated[bool, typer.Option("--write", help="Write the files; without it, show what would be.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Give the clients their servers back.")] = False,
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--client",
            metavar="NAME",
            help="Only this client: claude-code, claude-desktop, cursor or vscode. Can be given more than once.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Where the servers go, in place of pegboard.toml in the project or in the user's own folder.",
        ),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Move the MCP servers of the clients on this machine into pegboard.toml, and point each client at Pegboard.

    Servers that only their client can start stay where they are, and are named with the reason. Values of env and
    headers are written but never shown.
    """
    from pegboard.apps.cli import moved
    from pegboard.apps.cli.output import print_json

    if undo and (write or to):
        raise ConfigError("--undo goes with neither --write nor --to.", remedy="Give --undo alone, or with --client.")
    made = _undo(client or []) if undo else _init(client or [], to, write=write)
    if as_json:
        print_json(made)
    elif undo:
        moved.show_undone(made)
    else:
        moved.show(made)


def _init(names: Sequence[str], to: Path | None, *, write: bool) -> dict[str, Any]:
    from pegboard.apps.cli import adopt
    from pegboard.apps.cli.together import together

    files, notes = adopt.client_files(Path.home(), Path.cwd(), names)
    if not files:
        raise ConfigError(
            " ".join(["No MCP client with servers was found in its usual place.", *notes]),
            remedy="`pegboard mcp --config FILE` takes a client's file from anywhere.",
        )
    adoptions = adopt.adoptions(files, own_command(), to.expanduser() if to else None)
    if write:
        with together() as changes:
            adopt.write(adoptions, changes)
    return {
        "written": write,
        "targets": [_target(each) for each in adoptions],
        "clients": [_changed(each, change) for each in adoptions for change in each.changes],
        "stays": [
            {"client": stays.file.client.name, "file": str(stays.file.path)}
            | {"server": stays.server, "reason": stays.reason}
            for each in adoptions
            for stays in each.plan.stays
        ],
        "notes": [*notes, *adopt.hidden(files, adoptions), *filter(None, map(_caution, adoptions))],
    }


def _caution(adoption: Adoption) -> str | None:
    """A project's folder is often shared."""
    in_project = any(change.file.client.scope == "project" for change in adoption.changes)
    if not in_project or not any({"env", "headers"} & set(entry) for entry in adoption.plan.new.values()):
        return None
    return f"{adoption.target} holds values of env or headers, as the backups do: take care with version control."


def _target(adoption: Adoption) -> dict[str, Any]:
    from pegboard.importing import masked

    new = {name: masked(entry) for name, entry in adoption.plan.new.items()}
    return {"file": str(adoption.target), "exists": adoption.before is not None, "new": new}


def _changed(adoption: Adoption, change: Any) -> dict[str, Any]:
    return {
        "client": change.file.client.name,
        "file": str(change.file.path),
        "backup": str(change.backup),
        "entry": change.entry,
        "moved": [
            {"server": each.server, "as": each.name, "not_carried_over": list(each.left)}
            for each in adoption.plan.moved
            if each.file is change.file
        ],
    }


def _undo(names: Sequence[str]) -> dict[str, Any]:
    from pegboard.apps.cli import restore
    from pegboard.apps.cli.together import together

    made, notes = restore.restorations(Path.home(), Path.cwd(), names)
    with together() as changes:
        restore.put_back(made, changes)
    return {"undone": [_restored(each) for each in made], "notes": notes}


def _restored(each: Restoration) -> dict[str, Any]:
    return {
        "client": each.client.name,
        "file": str(each.path),
        "as_before": each.spent is not None,
        "put_back": list(each.put_back),
        "superseded": list(each.superseded),
        "backups": [str(path) for path in each.kept],
    }


def own_command() -> list[str]:
    """How a client finds this program: by its full path, or through the Python that runs it."""
    import shutil
    import sys

    started = Path(sys.argv[0])
    if started.stem == "pegboard" and started.is_file():
        return [str(started.absolute())]
    found = shutil.which("pegboard")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "pegboard"]
