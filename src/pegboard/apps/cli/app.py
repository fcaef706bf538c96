"""All commands in one place."""

from __future__ import annotations

from typing import Annotated

import typer

from pegboard import __version__
from pegboard.apps.cli import (
    audit,
    bench,
    calibrate,
    doctor,
    index,
    init,
    keys,
    lint,
    mcp,
    pins,
    rank,
    replay,
    route,
    scan,
    serve,
    shadow,
    state,
    summarize,
)
from pegboard.apps.cli.options import examples
from pegboard.apps.cli.program import Program

ABOUT = "Pegboard gives an LLM agent, at every turn, only the tools it needs."

EXAMPLES = examples(
    "What do all my MCP tools cost me?",
    "pegboard audit",
    "Which tools would this request get, and why?",
    'pegboard route "open an issue about the login page" --explain',
    "One gateway before all servers of my clients",
    "pegboard init",
)

app = typer.Typer(
    cls=Program,
    help=ABOUT,
    epilog=EXAMPLES,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def pegboard(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        typer.echo(f"pegboard {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("audit", epilog=audit.EXAMPLES)(audit.audit)
app.command("route", epilog=route.EXAMPLES)(route.route)
app.command("rank", epilog=rank.EXAMPLES)(rank.rank)
app.command("lint", epilog=lint.EXAMPLES)(lint.lint)
app.command("scan", epilog=scan.EXAMPLES)(scan.scan)
app.command("summarize", epilog=summarize.EXAMPLES)(summarize.summarize)
app.command("calibrate", epilog=calibrate.EXAMPLES)(calibrate.calibrate)
app.command("index", epilog=index.EXAMPLES)(index.index)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)
app.command("init", epilog=init.EXAMPLES)(init.init)
app.command("mcp", epilog=mcp.EXAMPLES)(mcp.mcp)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("shadow", epilog=shadow.EXAMPLES)(shadow.shadow)
app.command("replay", epilog=replay.EXAMPLES)(replay.replay)
app.add_typer(bench.app, name="bench", epilog=bench.EXAMPLES)
app.add_typer(keys.app, name="keys")
app.add_typer(pins.app, name="pins", epilog=pins.EXAMPLES)
app.add_typer(state.state, name="state", epilog=state.EXAMPLES)


def main() -> None:
    """The entry point of `pegboard` and of `python -m pegboard`."""
    app(prog_name="pegboard")
