"""Options that several commands share, and the examples in their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Configs = Annotated[
    list[Path] | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A configuration: pegboard.toml, or the JSON of an MCP client. Can be given more than once.",
    ),
]
Catalogs = Annotated[
    list[Path] | None,
    typer.Option(
        "--catalog",
        metavar="FILE",
        help="Tools from a file instead of live servers: JSON lines, a tools/list answer, or a tools array of OpenAI, "
        "Anthropic or Gemini; .gz is read too. Can be given more than once.",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="How tools are chosen: hybrid, attention, keyword or semantic."),
]
Exposure = Annotated[
    Literal["auto", "eager", "static", "dynamic", "native", "route"] | None,
    typer.Option(
        help="Which tools the client is listed: all (eager, native), a search (static), a search and what it found "
        "(dynamic), or a search that also considers price, speed and reliability (route)."
    ),
]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"] | None, typer.Option(help="Log level on stderr.")]
LogFormat = Annotated[
    Literal["text", "json"] | None, typer.Option(help="Log format: text, or one JSON object per line.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout, and nothing else.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", help="Show logs and tracebacks on stderr, as PEGBOARD_DEBUG=1 does.")
]


def examples(*lines: str) -> str:
    """The examples at the end of a command's help, in Markdown, from alternating explanations and commands."""
    pairs = zip(lines[::2], lines[1::2], strict=True)
    block = "\n\n".join(f"# {what}\n{typed}" for what, typed in pairs)
    return f"**Examples**\n\n```\n{block}\n```"


def refuse_before_command(context: typer.Context) -> None:
    """Raises typer.BadParameter for options given before the name of a subcommand, which they would not reach.

    ``--verbose`` works anywhere.
    """
    given = [
        max(option.opts, key=len)
        for option in context.command.params
        if option.name not in (None, "verbose") and _is_typed(context, str(option.name))
    ]
    if given:
        raise typer.BadParameter(
            f"write options after {context.invoked_subcommand!r}", context, param_hint=", ".join(given)
        )


def _is_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
