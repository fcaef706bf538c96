"""`pegboard state`: shows, exports, imports and removes stored state."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.spend_limits import NanoUsd, dollars, nano_usd

if TYPE_CHECKING:
    from pegboard.apps.cli.state_actions import OpenStore

EXAMPLES = examples(
    "Where is state kept, and how much of it is there?",
    "pegboard state show",
    "From a file to a server that many machines share",
    "pegboard state export state.jsonl\nPEGBOARD_STATE=redis://127.0.0.1:6379/0 pegboard state import state.jsonl",
    "Remove what a key spent and taught, and its activity",
    "pegboard state forget --key alice",
)
SHOW = examples(
    "Where is state kept, and how much of it is there?",
    "pegboard state show",
    "Statistics of each tool, and spending",
    "pegboard state show --statistics --spend",
)
EXPORT = examples(
    "Everything that cannot be recomputed, into a file that only you can read",
    "pegboard state export state.jsonl",
    "The approved definitions of one server",
    'pegboard state export | grep \'"record":"pin","server":"github"\'',
)
IMPORT = examples(
    "From a file to a server that many machines share",
    "pegboard state export state.jsonl\nPEGBOARD_STATE=redis://127.0.0.1:6379/0 pegboard state import state.jsonl",
    "Into a store that is not empty",
    "pegboard state import state.jsonl --merge",
)
FORGET = examples(
    "A conversation, by the client's session id (Mcp-Session-Id)",
    "pegboard state forget --session 5f0c1b9e",
    "What a key spent and taught, and its activity",
    "pegboard state forget --key alice",
    "Statistics and pins of a server that is gone",
    "pegboard state forget --server github",
    "Everything learnt from conversations with models, so that it is learnt again",
    "pegboard state forget --lessons",
    "What the use of tools taught the selection, of all keys",
    "pegboard state forget --habits",
)

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)

WORDS = {
    "session": ("session", "sessions"),
    "statistics": ("tool with statistics", "tools with statistics"),
    "lesson": ("lesson from conversations", "lessons from conversations"),
    "habit": ("row of habits", "rows of habits"),
    "meter": ("meter of spending", "meters of spending"),
    "hold": ("amount held back", "amounts held back"),
    "pin": ("pin", "pins"),
    "switch": ("thing switched off", "things switched off"),
    "embedding": ("embedding", "embeddings"),
    "activity": ("decision", "decisions"),
    "definition": ("listing of a server", "listings of servers"),
    "result": ("result of a tool", "results of tools"),
    "audit": ("line of the audit log", "lines of the audit log"),
}


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def about(context: typer.Context) -> None:
    """Show, export, import or remove sessions, statistics, lessons, habits, spending and pins.

    The store is the one that the configuration names: --config, else pegboard.toml in the current folder if you have
    allowed it (with `state`, it counts only if it is named), else the user's own; without any, the default file.
    PEGBOARD_STATE overrides it.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("show", epilog=SHOW)
def show(
    config: Configs = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Statistics of each tool's calls.")] = False,
    lessons: Annotated[
        bool, typer.Option("--lessons", help="Statistics of conversations with models, by the hash of their key.")
    ] = False,
    habits: Annotated[
        bool, typer.Option("--habits", help="What use taught, by key: whether it is used, and what it is worth.")
    ] = False,
    pins: Annotated[bool, typer.Option("--pins", help="The approved definitions, and those seen last.")] = False,
    spend: Annotated[bool, typer.Option("--spend", help="Spending by session, key and day.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show where state is kept, the number of records of each kind, the spending, and the size."""
    from pegboard.apps.cli import state_actions as kept

    chosen = {"statistics": statistics, "lessons": lessons, "habits": habits, "pins": pins, "spend": spend}
    tables = [name for name, wanted in chosen.items() if wanted]
    found = asyncio.run(kept.look(config, tables))
    if as_json:
        print_json(found)
    else:
        show_found(found, tables)


@app.command("export", epilog=EXPORT)
def export(
    file: Annotated[Path | None, typer.Argument(help="Output file; without it, standard output.")] = None,
    config: Configs = None,
    embeddings: Annotated[
        bool, typer.Option("--embeddings", help="Include vectors, which are large and can be recomputed.")
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Write all state as JSON lines, which `pegboard state import` reads into any kind of store.

    The file appears only when it is complete, and only you can read it. It shows who used which tools and spent what;
    the documentation on stores lists the personal data in it.
    """
    from pegboard.apps.cli import state_actions as kept

    counts = asyncio.run(kept.export(config, file, embeddings=embeddings))
    if file is not None:
        _say({"file": str(file), "written": counts}, f"Written to {file}", counts, as_json=as_json)


@app.command("import", epilog=IMPORT)
def import_(
    file: Annotated[Path, typer.Argument(help="A file that `pegboard state export` wrote.")],
    config: Configs = None,
    merge: Annotated[
        bool,
        typer.Option(
            "--merge", help="Allow a store that is not empty: the newer of two records is kept, and existing pins."
        ),
    ] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Import state that was exported from any kind of store.

    Every line is checked before the first one is stored. Files and PostgreSQL import all or nothing; Redis imports in
    batches: if it is interrupted, the same command with --merge completes it.
    """
    from pegboard.apps.cli import state_actions as kept

    counts, taken = asyncio.run(kept.import_(config, file, merge=merge))
    said = f"{taken:,} taken from {file}, which has"
    _say({"file": str(file), "read": counts, "taken": taken}, said, counts, as_json=as_json)


@app.command("forget", epilog=FORGET)
def forget(
    config: Configs = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="A conversation, by its client's session id, or by its name (x-pegboard-session).",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="What a caller's key spent within its budgets, its habits, kept answers, results and activity.",
        ),
    ] = None,
    server: Annotated[str | None, typer.Option(metavar="NAME", help="Statistics and pins of a server's tools.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="SERVER/NAME", help="Statistics and pin of a tool.")] = None,
    lessons: Annotated[bool, typer.Option("--lessons", help="All statistics of conversations with models.")] = False,
    habits: Annotated[bool, typer.Option("--habits", help="Everything that the use of tools taught.")] = False,
    expired: Annotated[
        bool, typer.Option("--expired", help="Everything that the configured retention would remove.")
    ] = False,
    everything: Annotated[bool, typer.Option("--everything", help="All state, and the embeddings.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before removing everything.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Remove the records of a session, a key, a server or a tool; what was learnt; what has expired; or everything.

    Prints how many records were removed. A gateway that still serves a client writes its session again, so end the
    conversation first.
    """
    from pegboard.apps.cli import state_actions as kept

    named = {"session": session, "key": key, "server": server, "tool": tool}
    given = {name: value for name, value in named.items() if value is not None}
    if empty := [f"--{name}" for name, value in given.items() if not value.strip()]:
        raise typer.BadParameter(f"{empty[0]} is empty: it would be what belongs to nobody in particular")
    flags = {"lessons": lessons, "habits": habits, "expired": expired, "everything": everything}
    given |= {name: "" for name, wanted in flags.items() if wanted}
    if len(given) != 1:
        raise typer.BadParameter(
            "give one of --session, --key, --server, --tool, --lessons, --habits, --expired and --everything"
        )
    [(what, value)] = given.items()
    counts = asyncio.run(kept.forget(config, what, value, agreed=None if yes or not everything else _agreed))
    _say({"removed": counts}, "Removed", counts, as_json=as_json)


def _agreed(kept: OpenStore) -> bool:
    """Ask on a terminal; elsewhere the answer is no."""
    if not on_terminal():
        return False
    total = sum(kept.about.counts.values())
    return typer.confirm(f"{total:,} records in {kept.about.place} will be removed. Continue?", default=False, err=True)


def on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _say(payload: Mapping[str, object], what: str, counts: Mapping[Any, int], *, as_json: bool) -> None:

    if as_json:
        print_json(payload)
    else:
        stdout().print(plain(f"{what}: {counted(counts)}."), soft_wrap=True)


def counted(counts: Mapping[Any, int]) -> str:
    """
    >>> counted({"session": 1, "pin": 2_000, "hold": 0})
    '1 session, 2,000 pins'
    """
    said = [f"{count:,} {_words(kind)[count != 1]}" for kind, count in counts.items() if count]
    return ", ".join(said) or "nothing"


def _words(kind: str) -> tuple[str, str]:
    """One of a kind, and many; the kind itself where there are no words for it."""
    return WORDS.get(kind, (kind, kind))


def show_found(found: Mapping[str, Any], tables: Sequence[str]) -> None:
    console = stdout()
    console.print(_summary(found))
    made = {"statistics": _statistics, "lessons": _lessons, "habits": _habits, "pins": _pins, "spend": _spend}
    for name in tables:
        console.print()
        console.print(made[name](found[name]))


def _summary(found: Mapping[str, Any]) -> Table:
    made = table("", "state", "")
    spent, replicas = found["spent_usd"], found["replicas"]
    made.add_row(*cells("kept in", f"{found['backend']} {found['version']}, {found['place']}"))
    made.add_row(*cells("takes", f"{found['bytes'] / 1e6:,.1f} MB"))
    made.add_row(*cells("migrations", ", ".join(found["migrations"])))
    for kind, count in found["counts"].items():
        changed = f", {found['pins_changed']:,} of them changed" if kind == "pin" and count else ""
        made.add_row(*cells(_words(kind)[1], f"{count:,}{changed}"))
    made.add_row(*cells("spent today", dollars(nano_usd(spent["today"]))))
    made.add_row(*cells("spent in all", dollars(nano_usd(spent["in_all"]))))
    if replicas is not None:
        made.add_row(*cells("replicas alive", replicas))
    return made


def _statistics(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Statistics", "tool", ">calls", ">succeeded", ">r", ">σ²", ">p_fail", ">L, s", "last called")
    for row in rows:
        averages = (f"{row[name]:.3f}" for name in ("success", "variance", "failure", "latency"))
        name = f"{row['server']}/{row['name']}" if row["name"] else f"{row['server']}, all of it"
        made.add_row(*cells(name, f"{row['calls']:,}", f"{row['successes']:,}", *averages, _date(row["used"])))
    return made


def _lessons(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Lessons", "key", ">conversations", ">turns each", ">tokens a turn", ">with news", "last added to")
    for row in rows:
        counts, later = (f"{row['conversations']:,.0f}", _mean(row["requests"], row["conversations"])), row["later"]
        news = f"{row['changed'] / later:.0%}" if later else ""
        made.add_row(*cells(row["key"][:12], *counts, _mean(row["growth"], later), news, _date(row["used"])))
    return made


def _habits(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table(
        "Habits", "key", ">tools", "group", "taught order", ">calls found more", "95% interval", "last added to"
    )
    for row in rows:
        more, interval = "", ""
        if row["difference"] is not None:
            more = f"{row['difference']['value']:+.1%}"
            interval = f"{row['difference']['low']:+.1%} to {row['difference']['high']:+.1%}"
        group, state = ("control", "never used") if row["control"] else ("", "used" if row["used_now"] else "unused")
        made.add_row(*cells(row["key"], row["tools"], group, state, more, interval, _date(row["used"])))
    return made


def _pins(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Pins", "tool", "approved", "seen last")
    for row in rows:
        seen = "the same" if row["seen"] == row["approved"] else row["seen"][:12]
        made.add_row(*cells(f"{row['server']}/{row['name']}", row["approved"][:12], seen))
    return made


def _spend(rows: Sequence[Mapping[str, Any]]) -> Table:
    made = table("Spending", "by", "name", ">spent", "last")
    for row in rows:
        last = "" if row["used"] is None else _date(row["used"])
        made.add_row(*cells(row["kind"], row["name"], dollars(NanoUsd(row["spent"])), last))
    return made


def _mean(total: float, count: float) -> str:
    return f"{total / count:,.1f}" if count else ""


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
