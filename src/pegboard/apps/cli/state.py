"""`pegboard state`: what is kept, carried elsewhere, and forgotten."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pegboard.apps.cli.kept import Kept

EXAMPLES = examples(
    "Where is state kept, and how much of it is there?",
    "pegboard state show",
    "From a file to a server that many machines share",
    "pegboard state export state.jsonl\nPEGBOARD_STATE=redis://127.0.0.1:6379/0 pegboard state import state.jsonl",
    "Remove what a caller spent, and its sessions",
    "pegboard state forget --key alice",
)
SHOW = examples(
    "Where is state kept, and how much of it is there?",
    "pegboard state show",
    "What calls have shown of each tool, and what was spent",
    "pegboard state show --statistics --spend",
)
EXPORT = examples(
    "Everything that cannot be computed again, into a file that only you can read",
    "pegboard state export state.jsonl",
    "The approved definitions of one server",
    'pegboard state export | grep \'"record":"pin","server":"github"\'',
)
IMPORT = examples(
    "From a file to a server that many machines share",
    "pegboard state export state.jsonl\nPEGBOARD_STATE=redis://127.0.0.1:6379/0 pegboard state import state.jsonl",
    "Into a store that already holds something",
    "pegboard state import state.jsonl --merge",
)
FORGET = examples(
    "A conversation, by the id that the client has (its Mcp-Session-Id)",
    "pegboard state forget --session 5f0c1b9e",
    "What was spent with a key, and its sessions",
    "pegboard state forget --key alice",
    "Statistics and pins of a server that is gone",
    "pegboard state forget --server github",
    "What conversations with models have taught: which way is cheapest is learnt anew",
    "pegboard state forget --lessons",
)

state = typer.Typer(rich_markup_mode="markdown")


@state.callback(invoke_without_command=True, epilog=EXAMPLES)
def about(context: typer.Context) -> None:
    """Sessions, statistics, lessons, spending and pins: look at them, carry them to another store, remove them.

    The store is the one of the configuration: --config, else pegboard.toml in the current folder, else the user's own;
    without any, the file that is used by default. PEGBOARD_STATE names another.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@state.command("show", epilog=SHOW)
def show(
    config: Configs = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="What calls have shown of each tool.")] = False,
    lessons: Annotated[
        bool, typer.Option("--lessons", help="What conversations with models were like, by the hash of their key.")
    ] = False,
    pins: Annotated[bool, typer.Option("--pins", help="The definitions that were approved, and seen last.")] = False,
    spend: Annotated[bool, typer.Option("--spend", help="What was spent, by session, key and day.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Say where state is kept, and what is in it: how many of each kind, what was spent, how much room it takes."""
    from pegboard.apps.cli import kept, output, shown

    chosen = {"statistics": statistics, "lessons": lessons, "pins": pins, "spend": spend}
    tables = [name for name, wanted in chosen.items() if wanted]
    found = asyncio.run(kept.look(config, tables))
    if as_json:
        output.print_json(found)
    else:
        shown.show(found, tables)


@state.command("export", epilog=EXPORT)
def export(
    file: Annotated[Path | None, typer.Argument(help="Where it goes; else to standard output.")] = None,
    config: Configs = None,
    embeddings: Annotated[
        bool, typer.Option("--embeddings", help="Vectors too, which can be computed again and are large.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write all state as JSON lines, which `pegboard state import` reads into any kind of store.

    The file takes its place when it is whole, and only you can read it. It says who used which tools and spent what:
    the documentation on stores has what is personal in it.
    """
    from pegboard.apps.cli import kept

    counts = asyncio.run(kept.export(config, file, embeddings=embeddings))
    if file is not None:
        _say({"file": str(file), "written": counts}, f"Written to {file}", counts, as_json=as_json)


@state.command("import", epilog=IMPORT)
def import_(
    file: Annotated[Path, typer.Argument(help="What `pegboard state export` wrote.")],
    config: Configs = None,
    merge: Annotated[
        bool,
        typer.Option(
            "--merge", help="Into a store that holds something: the newer of two stays, and pins that are there."
        ),
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Read state that was exported, from whatever kind of store.

    Every line is checked before the first is taken. Files and PostgreSQL take all or nothing; Redis takes a batch at a
    time: where that breaks off, the same command with --merge finishes it.
    """
    from pegboard.apps.cli import kept

    counts, taken = asyncio.run(kept.import_(config, file, merge=merge))
    said = f"{taken:,} taken from {file}, which has"
    _say({"file": str(file), "read": counts, "taken": taken}, said, counts, as_json=as_json)


@state.command("forget", epilog=FORGET)
def forget(
    config: Configs = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="A conversation, by the id that its client has.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was spent with a caller's key, and its sessions.")
    ] = None,
    server: Annotated[str | None, typer.Option(metavar="NAME", help="Statistics and pins of a server's tools.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="SERVER/NAME", help="Statistics and pin of a tool.")] = None,
    lessons: Annotated[bool, typer.Option("--lessons", help="What conversations with models were like, all.")] = False,
    expired: Annotated[bool, typer.Option("--expired", help="What the configured retention removes, now.")] = False,
    everything: Annotated[bool, typer.Option("--everything", help="All state, and the embeddings.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before everything goes.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Remove what belongs to a session, a key, a server or a tool; what was learnt; what has expired; or everything.

    Says how much was removed. A gateway that still talks with a client writes its session again: end the conversation
    first.
    """
    from pegboard.apps.cli import kept

    named = {"session": session, "key": key, "server": server, "tool": tool}
    given = {name: value for name, value in named.items() if value is not None}
    flags = {"lessons": lessons, "expired": expired, "everything": everything}
    given |= {name: "" for name, wanted in flags.items() if wanted}
    if len(given) != 1:
        raise typer.BadParameter(
            "give one of --session, --key, --server, --tool, --lessons, --expired and --everything"
        )
    [(what, value)] = given.items()
    counts = asyncio.run(kept.forget(config, what, value, agreed=None if yes or not everything else _agreed))
    _say({"removed": counts}, "Removed", counts, as_json=as_json)


def _agreed(kept: Kept) -> bool:
    """Asked on a terminal; elsewhere the answer is no."""
    if not on_terminal():
        return False
    total = sum(kept.about.counts.values())
    return typer.confirm(f"{total:,} records in {kept.about.place} will be removed. Go on?", default=False, err=True)


def on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _say(payload: Mapping[str, object], what: str, counts: Mapping[Any, int], *, as_json: bool) -> None:
    from pegboard.apps.cli import output, shown

    if as_json:
        output.print_json(payload)
    else:
        output.stdout().print(output.plain(f"{what}: {shown.counted(counts)}."), soft_wrap=True)
