"""`pegboard pins`: shows definitions that are not the approved ones and their changes, and approves them."""

from __future__ import annotations

import asyncio
import glob
import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples, refuse_before_command
from pegboard.apps.cli.output import plain, print_json, stdout
from pegboard.errors import ConfigError, PegboardError
from pegboard.model import Pin, ToolId, Wording
from pegboard.trust import Change, ScanResult, changes, scan_content
from pegboard.trust.every_user import MARK, for_every_user, of_every_user

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path
    from typing import TypeVar

    from pegboard.protocols import Pins
    from pegboard.settings import Settings
    from pegboard.stores.state import State

    T = TypeVar("T")

EXAMPLES = examples(
    "Which tools have changed since they were approved?",
    "pegboard pins",
    "What has changed in them?",
    "pegboard pins diff",
    "Approve the current definitions of two tools, and of all tools of a server",
    "pegboard pins approve github/create_issue github/merge_pull_request 'jira/*'",
)
DIFF_EXAMPLES = examples(
    "What has changed in the tools of a server, and in its own texts; the last line approves exactly that",
    "pegboard pins diff 'github/*'",
)
APPROVE_EXAMPLES = examples(
    "Approve the current definition of every tool of a server, e.g. of a new one",
    "pegboard pins approve --all-of github",
    "Of some of them",
    "pegboard pins approve 'github/list_*'",
    "Everything, of all servers",
    "pegboard pins approve '*'",
    "On the store of another configuration",
    "pegboard pins approve github/create_issue --config servers.toml",
)
SHOWN = 12
"""Characters of a fingerprint that a table shows."""
ITSELF = "(what it says of itself)"

Patterns = Annotated[
    list[str] | None, typer.Argument(metavar="PATTERN", help="Patterns on server/name, or on the name alone.")
]

app = typer.Typer(rich_markup_mode="markdown", add_completion=False, invoke_without_command=True)

UNKNOWN = "Its text is unknown: it was seen before texts were stored, or it is very long."


@dataclass(frozen=True, slots=True, kw_only=True)
class PinDiff:
    """A definition that is not the approved one."""

    tool: ToolId
    pin: Pin
    wording: Wording

    @property
    def title(self) -> str:
        what = self.tool.name or "what it says of itself"
        return f"{self.tool.server}: {what}{' (new)' if self.pin.new else ''}"

    @property
    def changes(self) -> list[Change] | None:
        """The changes since approval; None if a text is missing."""
        if self.wording.seen is None or (self.wording.approved is None and not self.pin.new):
            return None
        return changes(self.wording.approved, self.wording.seen)

    @property
    def verdict(self) -> ScanResult:
        """The scanner's verdict on the current definition."""
        return ScanResult() if self.wording.seen is None else scan_content(json.loads(self.wording.seen))


@app.callback(epilog=EXAMPLES)
def pins(
    context: typer.Context,
    config: Configs = None,
    every: Annotated[bool, typer.Option("--all", help="Also show tools whose definition is the approved one.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """List the tools whose definition is not the approved one, or that are new on a server.

    The definitions that a server lists when a gateway first sees it count as approved. The options `pins` and `scan` of
    the configuration say what happens to others. Reads the store of the gateway's state; no server is started.
    """
    if context.invoked_subcommand is not None:
        refuse_before_command(context)
        return

    known = dict(sorted(asyncio.run(_on_store(config or [], _known)).items()))
    shown = {tool: pin for tool, pin in known.items() if every or pin.changed}
    if as_json:
        print_json({"tools": _tools(known), "changed": len(_changed(known)), "pins": _rows(shown)})
    else:
        _show(known, shown)


@app.command("diff", epilog=DIFF_EXAMPLES)
def diff(
    patterns: Annotated[
        list[str] | None, typer.Argument(metavar="PATTERN", help="Patterns on server/name, or on the name alone.")
    ] = None,
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show each change of definitions since they were approved, and the scanner's findings.

    `[-gone-]` and `{+new+}` mark words; invisible characters are shown as escapes. The last line is the command that
    approves exactly what was shown.
    """

    named = patterns or ["*"]
    shown = asyncio.run(_on_store(config or [], lambda store: _differing(store, named)))
    seen = seen_hash({each.tool: each.pin for each in shown})
    if as_json:
        print_json({"changed": [payload(each) for each in shown], "seen": seen})
    else:
        show(shown)
        if shown:
            command = _command("approve", *named, "--seen", seen, files=config or ())
            stdout().print(plain(f"To approve exactly this: {command}"), soft_wrap=True)


@app.command("approve", epilog=APPROVE_EXAMPLES)
def approve(
    patterns: Patterns = None,
    all_of: Annotated[
        list[str] | None,
        typer.Option("--all-of", metavar="SERVER", help="Every definition of this server, and its own texts."),
    ] = None,
    seen: Annotated[
        str | None,
        typer.Option(
            "--seen",
            metavar="HASH",
            help="Approve nothing if one has changed since `pegboard pins diff` of the same tools printed this hash.",
        ),
    ] = None,
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Approve the current definitions of these tools.

    `pegboard pins diff` shows them, and prints the command that approves exactly what it has shown. A gateway that
    holds them back lists them again within ten seconds. A definition that an operator has rejected on the dashboard
    stays held back, and is named: that is lifted there.
    """

    chosen = [*(patterns or ()), *(f"{glob.escape(server)}/*" for server in all_of or ())]
    if not chosen:
        raise ConfigError("Nothing to approve was named.", remedy="Give patterns on server/name, or --all-of SERVER.")
    approved, rejected = asyncio.run(
        _on_state(config or [], lambda settings, state: _approve(settings, state, chosen, seen, config or ()))
    )
    if as_json:
        print_json({"approved": _rows(approved), "rejected": [str(tool) for tool in rejected]})
    else:
        typer.echo(
            "\n".join(f"Approved: {_shown(tool)}" for tool in approved) or "Nothing to approve: nothing has changed."
        )
    for tool in rejected:
        note = f"{_shown(tool)} is still held back: this definition was rejected on the dashboard, which can lift that."
        typer.echo(note, err=True)


async def _approve(
    settings: Settings, state: State, patterns: Sequence[str], seen: str | None, files: Sequence[Path]
) -> tuple[Mapping[ToolId, Pin], Sequence[ToolId]]:
    """Approve exactly the definitions that were read here, whatever is seen meanwhile; those, and of them the ones that
    an operator has rejected. Raises PegboardError if they are not those that were ``seen``."""
    from pegboard.clock import SYSTEM_CLOCK
    from pegboard.trust.switches import Switches

    store = state.pins
    chosen = await _chosen(store, patterns)
    if chosen and seen is not None and seen != seen_hash(chosen):
        raise PegboardError(
            f"These definitions are not the ones with the hash {seen!r}: nothing was approved.",
            remedy=f"Look at them again: `{_command('diff', *patterns, files=files)}`.",
        )
    await store.approve(for_every_user({tool: pin.seen for tool, pin in chosen.items()}, await _known(store)))
    switches = Switches(state.archive, SYSTEM_CLOCK, changed=lambda: None)
    await switches.read()
    rejected = [
        tool
        for tool, pin in sorted(chosen.items())
        if any(switches.is_rejected(each, pin.seen) for each in (tool, of_every_user(tool, settings.servers)))
    ]
    return dict(sorted((await store.get(sorted(chosen))).items())), rejected


def _command(*words: str, files: Iterable[Path]) -> str:
    """A command on pins, as it is typed, for these configurations."""
    given = [word for file in files for word in ("--config", str(file))]
    return shlex.join(["pegboard", "pins", *words, *given])


def seen_hash(changed: Mapping[ToolId, Pin]) -> str:
    """SHA-256 over definitions that are not the approved ones: another one of them, or another text, changes it."""
    rows = [[*tool, pin.seen] for tool, pin in sorted(changed.items())]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


async def _differing(store: Pins, patterns: Sequence[str]) -> list[PinDiff]:

    chosen = await _chosen(store, patterns)
    wordings = await store.wordings(sorted(chosen))
    return [PinDiff(tool=tool, pin=chosen[tool], wording=wordings[tool]) for tool in sorted(chosen)]


async def _known(store: Pins) -> dict[ToolId, Pin]:
    """All pins, without those that are no tool's and no server's."""
    return {tool: pin for tool, pin in (await store.get()).items() if tool.server and not tool.server.endswith(MARK)}


async def _chosen(store: Pins, patterns: Sequence[str]) -> dict[ToolId, Pin]:
    """The changed pins that match. Raises PegboardError for a pattern that matches no known tool."""
    known = await _known(store)
    for pattern in patterns:
        if known and not any(_fits(tool, pattern) for tool in known):
            raise PegboardError(
                f"No tool that a gateway has seen matches {pattern!r}.", remedy="`pegboard pins --all` lists them."
            )
    return {tool: pin for tool, pin in _changed(known).items() if any(_fits(tool, each) for each in patterns)}


def _fits(tool: ToolId, pattern: str) -> bool:
    """A pattern on the name of a server is for the connections of all its users, too."""
    return tool.fits(pattern) or ToolId(tool.server.partition(MARK)[0], tool.name).fits(pattern)


async def _on_store(files: Sequence[Path], work: Callable[[Pins], Awaitable[T]]) -> T:
    """The result of ``work`` on the pins of these configurations, or of the default one."""
    return await _on_state(files, lambda _, state: work(state.pins))


async def _on_state(files: Sequence[Path], work: Callable[[Settings, State], Awaitable[T]]) -> T:
    from pegboard.apps.cli.configs import given, own_files_agreed
    from pegboard.clock import SystemClock
    from pegboard.stores.state import open_state

    settings = given(files or own_files_agreed()).settings
    state = open_state(settings, SystemClock())
    try:
        return await work(settings, state)
    finally:
        await state.close()


def _changed(known: Mapping[ToolId, Pin]) -> dict[ToolId, Pin]:
    return {tool: pin for tool, pin in known.items() if pin.changed}


def _rows(pins: Mapping[ToolId, Pin]) -> list[dict[str, Any]]:
    return [
        {
            "server": tool.server,
            "tool": tool.name,
            "approved": pin.approved,
            "seen": pin.seen,
            "changed": pin.changed,
            "new": pin.new,
        }
        for tool, pin in pins.items()
    ]


def _show(known: Mapping[ToolId, Pin], shown: Mapping[ToolId, Pin]) -> None:
    from pegboard.apps.cli.output import cells, table

    console = stdout()
    if shown:
        made = table("", "server", "tool", "approved", "now")
        for tool, pin in shown.items():
            now = pin.seen[:SHOWN] if pin.changed else "the same"
            approved = "none" if pin.new else pin.approved[:SHOWN]
            made.add_row(*cells(tool.server, tool.name or ITSELF, approved, now))
        console.print(made)
    changed = _changed(known)
    console.print(
        plain(f"{_tools(changed):,} of {_tools(known):,} tools have a definition that is not the approved one.")
    )
    if whole := len(changed) - _tools(changed):
        console.print(plain(f"{whole:,} servers have changed their own title, version or instructions since approval."))


def _tools(pins: Mapping[ToolId, Pin]) -> int:
    """The number of pins of tools, without those of whole servers."""
    return sum(bool(tool.name) for tool in pins)


def _shown(tool: ToolId) -> str:
    return str(tool) if tool.name else f"{tool.server}, {ITSELF[1:-1]}"


def payload(differing: PinDiff) -> dict[str, Any]:
    found, verdict = differing.changes, differing.verdict
    return {
        "server": differing.tool.server,
        "tool": differing.tool.name,
        "new": differing.pin.new,
        "changes": None if found is None else [asdict(each) for each in found],
        "score": round(verdict.score, 3),
        "findings": [asdict(each) for each in verdict.findings],
    }


def show(of: Sequence[PinDiff]) -> None:
    console = stdout()
    for each in of:
        console.print(plain("\n".join([each.title, *_lines(each)]) + "\n"), soft_wrap=True)
    if not of:
        console.print(plain("Nothing has changed."))


def _lines(of: PinDiff) -> Iterator[str]:
    found = of.changes
    if found is None:
        yield f"  {UNKNOWN}"
    for each in found or ():
        yield f"  {each.place}"
        yield from (f"    {line}" for line in each.marked.split("\n"))
    for finding in of.verdict.findings:
        yield f"  ! {finding.rule} ({finding.weight:.2f}) at {finding.where}: {finding.excerpt}"
