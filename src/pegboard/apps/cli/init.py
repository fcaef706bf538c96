"""`pegboard init`: moves the servers of all clients into one pegboard.toml, and gives each client one entry."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tomli_w
import typer

from pegboard.apps.cli.options import Json, Verbose, examples
from pegboard.apps.cli.output import plain, stdout
from pegboard.errors import ConfigError
from pegboard.home_path import home_path

if TYPE_CHECKING:
    from pegboard.apps.cli.adopt import Adoption
    from pegboard.apps.cli.restore import Restoration

EXAMPLES = examples(
    "Show what would be written, and where",
    "pegboard init",
    "Write it; the old files are kept as NAME.before-pegboard",
    "pegboard init --write",
    "Only Cursor, into a separate file",
    "pegboard init --client cursor --to ~/cursor-servers.toml --write",
    "Undo it",
    "pegboard init --undo",
)


def init(
    write: Annotated[
        bool, typer.Option("--write", help="Write the files; without it, only show what would be written.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Move the servers back to the clients.")] = False,
    client: Annotated[
        list[str] | None,
        typer.Option(
            "--client",
            metavar="NAME",
            help="Only this client, as claude-code; a wrong name lists all. Can be given more than once.",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="File for the servers, instead of pegboard.toml in the project or in the user's own folder.",
        ),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Move the MCP servers of the clients on this machine into pegboard.toml, and point each client at Pegboard.

    Servers that only their client can start stay where they are, and the reason is shown. Remote servers without a
    token are asked how to sign in to them, and stay if Pegboard cannot. Values of env and headers are written but never
    shown.
    """
    from pegboard.apps.cli.output import print_json

    if undo and (write or to):
        raise ConfigError("--undo excludes --write and --to.", remedy="Give --undo alone, or with --client.")
    made = _undo(client or []) if undo else _init(client or [], to, write=write)
    if as_json:
        print_json(made)
    elif undo:
        show_undone(made)
    else:
        show(made)
    if undo and made["failed"]:
        raise typer.Exit(1)


def _init(names: Sequence[str], to: Path | None, *, write: bool) -> dict[str, Any]:
    from pegboard.apps.cli import adopt, client_reader, consent
    from pegboard.apps.cli.atomic_files import file_changes
    from pegboard.apps.cli.remote_access import remote_access

    files, notes = client_reader.client_files(Path.home(), Path.cwd(), names)
    if not files:
        raise ConfigError(
            " ".join(["No MCP client with servers was found in the usual places.", *notes]),
            remedy="`pegboard mcp --config FILE` reads a client's file from any place.",
        )
    access = remote_access(files)
    adoptions = adopt.adoptions(files, own_command(), home_path(to) if to else None, access.obstacle)
    if write:
        with file_changes() as changes:
            adopt.write(adoptions, changes)
        if ours := [each.target for each in adoptions if each.is_all_ours]:
            with suppress(OSError):  # all is written: without it, the user is asked once more
                consent.remember(ours)
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
        "notes": [
            *notes,
            *adopt.hidden(files, adoptions),
            *filter(None, map(_caution, adoptions)),
            *(
                f"{name!r} wants a sign-in: `pegboard login {name}`."
                for each in adoptions
                for name, entry in each.plan.new.items()
                if access.wants_sign_in(entry)
            ),
        ],
    }


def _caution(adoption: Adoption) -> str | None:
    """A warning about secrets in a project's folder, which is often shared."""
    in_project = any(change.file.client.scope == "project" for change in adoption.changes)
    if not in_project or not any({"env", "headers"} & set(entry) for entry in adoption.plan.new.values()):
        return None
    return f"{adoption.target} and the backups contain values of env or headers: keep them out of version control."


def _target(adoption: Adoption) -> dict[str, Any]:
    from pegboard.settings.client_import import masked

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
    from pegboard.apps.cli.atomic_files import file_changes

    made, notes, failures = restore.restorations(Path.home(), Path.cwd(), names)
    with file_changes() as changes:
        restore.put_back(made, changes)
    return {"undone": [_restored(each) for each in made], "notes": notes, "failed": failures}


def _restored(each: Restoration) -> dict[str, Any]:
    return {
        "client": each.client.name,
        "file": str(each.path),
        "as_before": each.spent is not None,
        "put_back": list(each.put_back),
        "superseded": list(each.superseded),
        "backups": [str(kept.undone) for kept in each.kept],
    }


def own_command() -> list[str]:
    """The command by which a client starts this program: its full path, or the Python that runs it."""
    import shutil
    import sys

    started = Path(sys.argv[0])
    if started.stem == "pegboard" and started.is_file():
        return [str(started.absolute())]
    found = shutil.which("pegboard")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "pegboard"]


def show(made: Mapping[str, Any]) -> None:
    say = _speaker()
    done = made["written"]
    for target in made["targets"]:
        if target["new"]:
            say(f"{'Written to' if done else 'Would be written to'} {target['file']}:\n")
            say(tomli_w.dumps({"servers": target["new"]}))
    for change in made["clients"]:
        say(f"{change['client']}: {change['file']}")
        for each in change["moved"]:
            left = f" (not carried over: {', '.join(each['not_carried_over'])})" if each["not_carried_over"] else ""
            say(f"  {each['server']}{'' if each['as'] == each['server'] else ' as ' + each['as']}{left}")
        say(f"  {'now starts' if done else 'would start'} {json.dumps(change['entry'], ensure_ascii=False)}")
        say(f"  {'kept' if done else 'would be kept'} as {change['backup']}\n")
    for stays in made["stays"]:
        say(f"Stays in {stays['file']}: {stays['server']!r}. {stays['reason']}")
    for note in made["notes"]:
        say(note)
    if not made["clients"]:
        say("Nothing is left to move.")
    elif done:
        say("Restart the clients. `pegboard doctor` checks the servers; `pegboard init --undo` reverts this.")
        say("`pegboard up` lets all clients share one process.")
    else:
        say("Nothing was changed. `pegboard init --write` makes these changes.")


def show_undone(made: Mapping[str, Any]) -> None:
    say = _speaker()
    for each in made["undone"]:
        if each["as_before"]:
            say(f"{each['client']}: {each['file']} is as it was before.")
            continue
        say(f"{each['client']}: {each['file']} was edited since. Edits stay; put back: {_list(each['put_back'])}.")
        if each["superseded"]:
            say(f"  The client has another {_list(each['superseded'])} now; the old one is in the backup.")
        say(f"  Kept: {_list(each['backups'])}")
    for note in (*made["notes"], *made["failed"]):
        say(note)
    say("pegboard.toml is unchanged." if made["undone"] or made["failed"] else "There is nothing to undo.")


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _speaker() -> Callable[[str], None]:
    console = stdout()
    return lambda text: console.print(plain(text), soft_wrap=True)
