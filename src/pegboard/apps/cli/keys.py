"""`pegboard keys`: keys that clients of the LLM gateway show."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from getpass import getpass
from typing import Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.errors import ConfigError, PegboardError

app = typer.Typer(rich_markup_mode="markdown")

NEW_EXAMPLES = examples(
    "A key for one team, and what to add to pegboard.toml",
    "pegboard keys new team-a",
    "A key for two of the upstreams",
    "pegboard keys new nightly-jobs --upstreams openai,anthropic",
)
CHECK_EXAMPLES = examples("Whose key is this?", "pegboard keys check < key.txt")


@app.callback(invoke_without_command=True)
def keys(context: typer.Context) -> None:
    """Make keys for the LLM gateway, and look whose they are."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("new", epilog=NEW_EXAMPLES)
def new(
    name: Annotated[str, typer.Argument(help="What the key is called, in policies, events and logs.")],
    upstreams: Annotated[
        str, typer.Option(metavar="NAMES", help="Upstreams that it may be used for, as patterns with commas between.")
    ] = "*",
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Make a key, print it this once, and the lines for pegboard.toml, which hold only its hash.

    As soon as one key is configured, every request to a model needs one.
    """
    import tomli_w

    from pegboard.apps.cli.output import print_json
    from pegboard.gateways.keys import hashed, new_key

    key = new_key()
    table = {"hash": hashed(key), "upstreams": _patterns(upstreams)}
    _checked(name, table)
    lines = tomli_w.dumps({"llm": {"keys": {name: table}}})
    if as_json:
        print_json({"name": name, "key": key, "toml": lines} | table)
    else:
        sys.stdout.write(f"{key}\n\n{lines}")


@app.command("check", epilog=CHECK_EXAMPLES)
def check(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Read a key from standard input and say whose it is. Exits with 1 where it is nobody's."""
    from pegboard.apps.cli.configs import own_files
    from pegboard.apps.cli.output import print_json
    from pegboard.gateways.llm.keys import Keys
    from pegboard.settings import load_settings

    configured = load_settings(config or own_files()).llm.keys
    key = (getpass("Key: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    name = Keys(configured).name_of(key)
    if name is None:
        raise PegboardError("This key is none of the configuration's.", remedy="`pegboard keys new NAME` makes one.")
    upstreams = configured[name].upstreams
    if as_json:
        print_json({"name": name, "upstreams": upstreams, "policy": configured[name].policy()})
    else:
        sys.stdout.write(f"{name}, for the upstreams {', '.join(upstreams)}\n")


def _patterns(text: str) -> list[str]:
    return [each for each in map(str.strip, text.split(",")) if each]


def _checked(name: str, table: Mapping[str, object]) -> None:
    """Raises ConfigError for what the configuration would not take."""
    from pydantic import ValidationError

    from pegboard.client_configs import sentences
    from pegboard.settings.llm import LlmSettings

    try:
        LlmSettings.model_validate({"keys": {name: table}})
    except ValidationError as error:
        raise ConfigError(
            f"A key cannot be called {name!r}: {sentences(error)}.", remedy="Use letters, digits and ._@-"
        ) from error
