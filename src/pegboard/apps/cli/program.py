"""The program `pegboard`: its commands, and the place where each begins and ends.

The module of a command is imported when the command runs, not before. An error is printed once, on one line of stderr.
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from pegboard import __version__
from pegboard.apps.cli import stderr_log
from pegboard.apps.cli.options import examples
from pegboard.collector import importing
from pegboard.errors import CatalogError, ConfigError, PegboardError
from pegboard.extras import missing_extra

FAILED = 1
MISUSED = 2
INTERRUPTED = 130

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
UNWRITABLE = FULL | {errno.EPIPE}
"""What the system says of output for which there is no room, or whose reader is gone."""

GROUP = "pegboard.commands"
"""Group of entry points by which other distributions add commands; each is a `typer.Typer`."""

COMMANDS = {
    "audit": "Show what tool definitions cost, per server: the tokens that every request carries, and their price.",
    "audit-log": "Show who called which tools and models, from the log that [audit_log] turns on.",
    "logs": "Follow what happens in a gateway: decisions, calls, searches, requests to models, servers that come and go.",  # noqa: E501
    "top": "Watch a gateway: requests a second, tokens billed and saved, the tools that are called, the health of servers.",  # noqa: E501
    "report": "Show what was decided, what models cost, and what was saved, by day, model, key, client, tool and conversation.",  # noqa: E501
    "route": "Show which tools a request would be given, with their scores and why.",
    "rank": "Rank the tools of a labelled set for each of its queries.",
    "lint": "Find tools outranked for their own name, duplicates, weak names and descriptions, and long texts.",
    "scan": "Scan tool definitions for hidden characters, instructions to the model, and requests for secrets.",
    "summarize": "Write a summary of each tool: its name and at most 60 tokens, phrased as users ask for it.",
    "calibrate": "Fit the threshold of attention and the fusion of hybrid to the requests of one deployment.",
    "index": "Embed every tool into the configured store of embeddings, and into the index if that is a server.",
    "registry": "Keep a snapshot of an MCP registry on this machine, and find servers in it. Nothing is installed or started.",  # noqa: E501
    "doctor": "Check configuration files, servers, the encoder, the embedding cache, the state store, and versions.",
    "init": "Move the MCP servers of the clients on this machine into pegboard.toml, and point each client at Pegboard.",  # noqa: E501
    "mcp": "Serve one MCP client on standard input and output, as a gateway to all configured servers.",
    "serve": "Serve many MCP clients on streamable HTTP, as a gateway to all configured servers, started once.",
    "ui": "Show the dashboard over the state of this machine, without `pegboard serve`.",
    "up": "Run `pegboard serve` as a service of your session, so that all clients share one process and its servers.",
    "down": "Stop the process that `pegboard up` started, and remove its service. Clients then start servers of their own.",  # noqa: E501
    "login": "Sign in to a server by OAuth, and keep its tokens where the gateways of this user find them.",
    "logout": "Revoke the tokens of a server at its authorization server, and remove them from this machine.",
    "whoami": "List the sign-ins at servers: where, with which scopes, until when, and where the tokens are kept.",
    "shadow": "Show what filtering would have done to shadow requests: tokens saved, and tool calls lost.",
    "replay": "Run recorded requests through the filters of a configuration, and compare what each keeps.",
    "keys": "Make, rotate, list and check keys for the LLM gateway and tokens for the MCP gateway.",
    "pins": "List the tools whose definition is not the approved one, or that are new on a server.",
    "state": "Show, export, import or remove sessions, statistics, lessons, habits, spending and pins.",
}
"""Every command with the first sentence of its help. Its module is `pegboard.apps.cli.<name>`, with `_` for `-`."""

ABOUT = "Pegboard gives an LLM agent, at every turn, only the tools it needs."

EXAMPLES = examples(
    "What do all my MCP tools cost me?",
    "pegboard audit",
    "Which tools would this request get, and why?",
    'pegboard route "open an issue about the login page" --explain',
    "Put one gateway in front of all servers of my clients",
    "pegboard init",
)


class Program(TyperGroup):
    """The group of all commands, whose help is known without importing their modules.

    Exit codes: 0 done, 1 failed, 2 wrong use or configuration, 130 interrupted.
    """

    def __init__(self, **settings: Any) -> None:
        described: dict[str, Any] = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}
        added = {name: load(name) for name in sorted(_added())}
        super().__init__(**settings | {"commands": described | added})

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(name) if name else None, rest

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        _open_what_was_closed()
        _write_what_can_be_written()
        debugging = _has(words, "--verbose") or os.environ.get("PEGBOARD_DEBUG", "") not in ("", "0")
        with stderr_log.to_stderr(debugging=debugging):
            try:
                code = self._outcome(words, *rest, debugging=debugging, **extra)
                sys.stdout.flush()
            except KeyboardInterrupt:  # while it waits for whoever reads the output
                code = INTERRUPTED
                _discard_output()
            except OSError as error:
                code = _unwritten(error)
        sys.exit(code if isinstance(code, int) else 0)

    def _outcome(self, words: Sequence[str], *rest: Any, debugging: bool, **extra: Any) -> Any:
        """The exit code, after an error was told of. Raises OSError if the output cannot be written."""
        try:
            return super().main(words, *rest, **extra | {"standalone_mode": False})
        except (KeyboardInterrupt, typer.Abort):  # Abort: a question was not answered
            return INTERRUPTED
        except Exception as error:  # the last place that can turn it into a message
            if isinstance(error, OSError) and error.errno in UNWRITABLE and _is_of_output(error):
                raise
            if debugging:
                traceback.print_exc()
            return _say(_cause(error), as_json=_has(words, "--json"))


app = typer.Typer(
    cls=Program,
    help=ABOUT,
    epilog=EXAMPLES,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _has(words: Sequence[str], flag: str) -> bool:
    """Whether a flag was given before any `--`."""
    return flag in (words[: words.index("--")] if "--" in words else words)


def _cause(error: Exception) -> Exception:
    """The error inside exception groups of one, as task groups raise them; a package that is not installed as the extra
    that brings it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return missing_extra(error) or error


def _say(error: Exception, *, as_json: bool) -> int:
    payload = _payload(error)
    payload.setdefault("remedy", "")
    if as_json:
        sys.stdout.write(json.dumps(payload, indent=2) + "\n")
    else:
        sentence = " ".join(f"{payload['message']} {payload['remedy']}".split())
        sys.stderr.write(f"pegboard: {sentence}\n")
    return MISUSED if isinstance(error, ConfigError | CatalogError | typer.TyperException) else FAILED


def _payload(error: Exception) -> dict[str, Any]:
    if isinstance(error, PegboardError):
        return error.payload()
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "pegboard"
        return {
            "error": "usage_error",
            "message": error.format_message().rstrip(".") + ".",
            "remedy": f"`{command} --help` shows its usage.",
        }
    if isinstance(error, OSError) and error.errno in FULL:
        file = f" {error.filename!r}" if error.filename else ""
        doing = "read or write" if error.errno == errno.EIO else "write"
        return {"error": "cannot_write", "message": f"Cannot {doing}{file}: {error.strerror}."}
    return {
        "error": "internal_error",
        "message": f"This is a defect in Pegboard: {type(error).__name__}: {error}.",
        "remedy": "Run it again with --verbose and report the output.",
    }


def _write_what_can_be_written() -> None:
    """Let characters that the terminal's encoding does not have become `?`, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="replace")


def _open_what_was_closed() -> None:
    """Let a stream that whoever started the program has closed (`>&-`) read and write nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _unwritten(error: OSError) -> int:
    """Say why the output was not written. A reader that is gone (`pegboard … | head`) is no error."""
    _discard_output()
    if error.errno != errno.EPIPE:
        sys.stderr.write(f"pegboard: Cannot write the output: {error.strerror}.\n")
    return FAILED


def _is_of_output(error: OSError) -> bool:
    """Whether it is the output that cannot be written, not a file of a command.

    What a stream could not write it tries again when it is flushed, unless it keeps nothing (`python -u`).
    """
    if error.errno == errno.EPIPE:
        return True
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return error.filename is None and getattr(sys.stdout, "write_through", False)


def _discard_output() -> None:
    """Let Python's flush at exit succeed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load(name: str) -> Any:
    """Import a command: the function of its module that has its name, or the module's `app`."""
    app = _added()[name].load() if name not in COMMANDS else _own(name)
    command = typer.main.get_command(app)
    command.name = name
    return command


def names() -> list[str]:
    return [*COMMANDS, *sorted(_added())]


def _own(name: str) -> typer.Typer:
    own = name.replace("-", "_")
    with importing():
        module = import_module(f"pegboard.apps.cli.{own}")
    found = getattr(module, "app", None)
    if isinstance(found, typer.Typer):
        return found
    app = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    app.command(name, epilog=module.EXAMPLES)(getattr(module, own))
    return app


def _added() -> dict[str, Any]:
    return {each.name: each for each in entry_points(group=GROUP) if each.name not in COMMANDS}


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


def main() -> None:
    """Run the command line; `pegboard.apps.main` checks first that it is installed."""
    app(prog_name="pegboard")
