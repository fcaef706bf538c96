"""`pegboard pins`: tools whose definition is not the one that was approved, and approving them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.errors import PegboardError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from pegboard.model import Pin, ToolId
    from pegboard.seams import Pins

EXAMPLES = examples(
    "Which tools are not what they were when they were approved?",
    "pegboard pins",
    "Approve what two tools are now, and everything of a server",
    "pegboard pins approve github/create_issue github/merge_pull_request 'jira/*'",
)
APPROVE_EXAMPLES = examples(
    "Approve what every tool of a server is now",
    "pegboard pins approve 'github/*'",
    "On the store of another configuration",
    "pegboard pins approve github/create_issue --config servers.toml",
)
SHOWN = 12
"""Characters of a fingerprint in a table."""

app = typer.Typer(rich_markup_mode="markdown", invoke_without_command=True)


@app.callback()
def pins(
    context: typer.Context,
    config: Configs = None,
    every: Annotated[bool, typer.Option("--all", help="Also tools whose definition is the approved one.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """List the tools whose definition is not the one that was approved.

    The first definition that a gateway sees of a tool counts as approved. What is done about others is said by the
    option `pins` of the configuration. Reads the store of the gateway's state; no server is started.
    """
    if context.invoked_subcommand is not None:
        return
    from pegboard.apps.cli import output

    known = asyncio.run(_on_store(config or [], lambda store: store.get()))
    shown = {tool: pin for tool, pin in known.items() if every or pin.changed}
    if as_json:
        output.print_json({"tools": len(known), "changed": len(_changed(known)), "pins": _rows(shown)})
    else:
        _show(known, shown)


@app.command("approve", epilog=APPROVE_EXAMPLES)
def approve(
    patterns: Annotated[
        list[str], typer.Argument(metavar="PATTERN", help="Patterns on server/name, or on the name alone.")
    ],
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
        typer.echo("\n".join(f"Approved: {tool}" for tool in approved) or "Nothing to approve: nothing has changed.")


async def _approve(store: Pins, patterns: Sequence[str]) -> Mapping[ToolId, Pin]:
    """Exactly what was looked at, whatever is seen meanwhile."""
    known = await store.get()
    for pattern in patterns:
        if not any(tool.fits(pattern) for tool in known):
            raise PegboardError(
                f"No tool that a gateway has seen fits {pattern!r}.", remedy="`pegboard pins --all` lists them."
            )
    chosen = {tool: pin for tool, pin in _changed(known).items() if any(map(tool.fits, patterns))}
    await store.approve({tool: pin.seen for tool, pin in chosen.items()})
    return await store.get(sorted(chosen))


async def _on_store(files: Sequence[Path], work: Any) -> Mapping[ToolId, Pin]:
    """What ``work`` makes of the pins of these configurations, or of the usual one."""
    from pegboard.apps.cli.configs import given, own_files
    from pegboard.clock import SystemClock
    from pegboard.stores.state import open_state

    state = open_state(given(files or own_files()).settings, SystemClock())
    try:
        found: Mapping[ToolId, Pin] = await work(state.pins)
    finally:
        await state.close()
    return dict(sorted(found.items()))


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
            made.add_row(*cells(tool.server, tool.name, pin.approved[:SHOWN], now))
        console.print(made)
    changed = len(_changed(known))
    console.print(plain(f"{changed:,} of {len(known):,} tools are not defined as they were when they were approved."))
