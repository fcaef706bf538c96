"""`pegboard pins`: definitions that are not the ones that were approved, what has changed in them, approving them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, TypeVar

    from pegboard.apps.cli.pin_changes import Differing
    from pegboard.model import Pin, ToolId
    from pegboard.seams import Pins

    T = TypeVar("T")

EXAMPLES = examples(
    "Which tools are not what they were when they were approved?",
    "pegboard pins",
    "What has changed in them?",
    "pegboard pins diff",
    "Approve what two tools are now, and everything of a server",
    "pegboard pins approve github/create_issue github/merge_pull_request 'jira/*'",
)
DIFF_EXAMPLES = examples(
    "What has changed in the tools of a server, and in what it says of itself",
    "pegboard pins diff 'github/*'",
)
APPROVE_EXAMPLES = examples(
    "Approve what every tool of a server is now",
    "pegboard pins approve 'github/*'",
    "Everything, of all servers",
    "pegboard pins approve '*'",
    "On the store of another configuration",
    "pegboard pins approve github/create_issue --config servers.toml",
)
SHOWN = 12
"""Characters of a fingerprint in a table."""
ITSELF = "(what it says of itself)"

Patterns = Annotated[
    list[str], typer.Argument(metavar="PATTERN", help="Patterns on server/name, or on the name alone.")
]

app = typer.Typer(rich_markup_mode="markdown", invoke_without_command=True)


@app.callback()
def pins(
    context: typer.Context,
    config: Configs = None,
    every: Annotated[bool, typer.Option("--all", help="Also tools whose definition is the approved one.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """List the tools whose definition is not the one that was approved, or that are new on a server.

    The definitions that a server lists when a gateway first sees it count as approved. What is done about others is
    said by the options `pins` and `scan` of the configuration. Reads the store of the gateway's state; no server is
    started.
    """
    if context.invoked_subcommand is not None:
        return
    from pegboard.apps.cli import output

    known = dict(sorted(asyncio.run(_on_store(config or [], lambda store: store.get())).items()))
    shown = {tool: pin for tool, pin in known.items() if every or pin.changed}
    if as_json:
        output.print_json({"tools": _tools(known), "changed": len(_changed(known)), "pins": _rows(shown)})
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
    """Show what has changed in definitions since they were approved, place by place, and what the scanner finds.

    `[-gone-]` and `{+new+}` mark words; characters that cannot be seen are shown as escapes.
    """
    from pegboard.apps.cli import output, pin_changes

    shown = asyncio.run(_on_store(config or [], lambda store: _differing(store, patterns or ["*"])))
    if as_json:
        output.print_json({"changed": [pin_changes.payload(each) for each in shown]})
    else:
        pin_changes.show(shown)


@app.command("approve", epilog=APPROVE_EXAMPLES)
def approve(
    patterns: Patterns,
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Approve the definitions that these tools have now.

    A gateway that holds them back has them on its board again within ten seconds.
    """
    from pegboard.apps.cli import output

    approved = asyncio.run(_on_store(config or [], lambda store: _approve(store, patterns)))
    if as_json:
        output.print_json({"approved": _rows(approved)})
    else:
        typer.echo(
            "\n".join(f"Approved: {_shown(tool)}" for tool in approved) or "Nothing to approve: nothing has changed."
        )


async def _approve(store: Pins, patterns: Sequence[str]) -> Mapping[ToolId, Pin]:
    """Exactly what was looked at, whatever is seen meanwhile."""
    chosen = await _chosen(store, patterns)
    await store.approve({tool: pin.seen for tool, pin in chosen.items()})
    return dict(sorted((await store.get(sorted(chosen))).items()))


async def _differing(store: Pins, patterns: Sequence[str]) -> list[Differing]:
    from pegboard.apps.cli.pin_changes import Differing

    chosen = await _chosen(store, patterns)
    wordings = await store.wordings(sorted(chosen))
    return [Differing(tool=tool, pin=chosen[tool], wording=wordings[tool]) for tool in sorted(chosen)]


async def _chosen(store: Pins, patterns: Sequence[str]) -> dict[ToolId, Pin]:
    """Those that changed. Raises PegboardError for a pattern that fits nothing at all."""
    known = await store.get()
    for pattern in patterns:
        if known and not any(tool.fits(pattern) for tool in known):
            raise PegboardError(
                f"No tool that a gateway has seen fits {pattern!r}.", remedy="`pegboard pins --all` lists them."
            )
    return {tool: pin for tool, pin in _changed(known).items() if any(map(tool.fits, patterns))}


async def _on_store(files: Sequence[Path], work: Callable[[Pins], Awaitable[T]]) -> T:
    """What ``work`` makes of the pins of these configurations, or of the usual one."""
    from pegboard.apps.cli.configs import given, own_files
    from pegboard.clock import SystemClock
    from pegboard.stores.state import open_state

    state = open_state(given(files or own_files()).settings, SystemClock())
    try:
        return await work(state.pins)
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
    from pegboard.apps.cli.output import cells, plain, stdout, table

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
        plain(f"{_tools(changed):,} of {_tools(known):,} tools are not defined as they were when they were approved.")
    )
    if whole := len(changed) - _tools(changed):
        console.print(plain(f"{whole:,} servers say something else of themselves than when that was approved."))


def _tools(pins: Mapping[ToolId, Pin]) -> int:
    """Without those of servers as wholes."""
    return sum(bool(tool.name) for tool in pins)


def _shown(tool: ToolId) -> str:
    return str(tool) if tool.name else f"{tool.server}, {ITSELF[1:-1]}"
