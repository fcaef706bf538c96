"""`pegboard keys`: makes and checks keys of the LLM gateway and tokens of the MCP gateway."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from getpass import getpass
from typing import Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.errors import ConfigError, PegboardError

app = typer.Typer(rich_markup_mode="markdown", add_completion=False)

NEW_EXAMPLES = examples(
    "A key for one team, and what to add to pegboard.toml",
    "pegboard keys new team-a",
    "A key for two of the upstreams",
    "pegboard keys new nightly-jobs --upstreams openai,anthropic",
    "A token for MCP on HTTP with two servers and a scope",
    "pegboard keys new ann --mcp --tools 'github/*,time/*' --scopes dba",
)
ROTATE_EXAMPLES = examples(
    "A new key for a holder, whose previous one stays valid for a week",
    "pegboard keys rotate team-a",
    "The previous one was lost: it ends now",
    "pegboard keys rotate team-a --days 0",
)
LIST_EXAMPLES = examples("Which keys are there, and when do they end?", "pegboard keys list")
CHECK_EXAMPLES = examples("Whose key is this?", "pegboard keys check < key.txt")


@app.callback(invoke_without_command=True)
def keys(context: typer.Context) -> None:
    """Make, rotate, list and check keys for the LLM gateway and tokens for the MCP gateway."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("new", epilog=NEW_EXAMPLES)
def new(
    name: Annotated[str, typer.Argument(help="Name of the key in policies, events and logs.")],
    upstreams: Annotated[
        str, typer.Option(metavar="NAMES", help="Upstreams that the key permits, as comma-separated patterns.")
    ] = "*",
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Make a token for the MCP gateway on HTTP instead of a key.")
    ] = False,
    tools: Annotated[
        str | None,
        typer.Option(metavar="PATTERNS", help="Tools that the token permits, as comma-separated patterns."),
    ] = None,
    scopes: Annotated[str, typer.Option(metavar="NAMES", help="Scopes of the token, comma-separated.")] = "",
    days: Annotated[int | None, typer.Option(min=1, help="Days after which the key ends; without it, never.")] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Make a key and print it once, with the lines for pegboard.toml, which contain only its hash.

    If any key is configured, every request to a model needs one. If any token is configured, every MCP request on HTTP
    needs one.
    """
    import tomli_w

    from pegboard.apps.cli.output import print_json
    from pegboard.gateways.access_keys import hashed, new_key

    key = new_key()
    if mcp:
        table: dict[str, object] = {"hash": hashed(key), "scopes": _patterns(scopes)}
        table |= {} if tools is None else {"tools": _patterns(tools)}
        document: dict[str, object] = {"access": {name: table}}
    else:
        table = {"hash": hashed(key), "upstreams": _patterns(upstreams)}
        document = {"llm": {"keys": {name: table}}}
    if days is not None:
        table["expires"] = _in_days(days)
    _checked(name, document)
    lines = tomli_w.dumps(document)
    if as_json:
        print_json({"name": name, "key": key, "toml": lines} | _shown(table))
    else:
        sys.stdout.write(f"{key}\n\n{lines}")


@app.command("rotate", epilog=ROTATE_EXAMPLES)
def rotate(
    name: Annotated[str, typer.Argument(help="Name of the key or token.")],
    config: Configs = None,
    days: Annotated[int, typer.Option(min=0, help="Days for which the previous key stays valid.")] = 7,
    lasts: Annotated[
        int | None, typer.Option(min=1, help="Days after which the new key ends; without it, never.")
    ] = None,
    mcp: Annotated[bool, typer.Option("--mcp", help="The token of [access], if a key has the same name.")] = False,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Make a successor of a key and print it once, with the lines to change in pegboard.toml.

    Both keys are valid until the previous one ends, so that its clients can be changed one after the other. The holder
    keeps name, rights and limits.
    """
    import tomli_w

    from pegboard.apps.cli.configs import own_files_agreed
    from pegboard.apps.cli.output import print_json
    from pegboard.gateways.access_keys import hashed, new_key
    from pegboard.settings import load_settings

    settings = load_settings(config or own_files_agreed())
    section = "access" if mcp or name not in settings.llm.keys else "llm.keys"
    found = settings.access.get(name) if section == "access" else settings.llm.keys[name]
    if found is None:
        raise PegboardError(f"There is no key {name!r}.", remedy="`pegboard keys list` shows the names.")
    if found.hash is None:
        raise PegboardError(
            f"The token {name!r} is read from a variable.", remedy="Put the new one there, and start the gateway again."
        )
    key = new_key()
    table: dict[str, object] = {"hash": hashed(key)}
    table |= {"previous": found.hash, "previous_expires": _in_days(days)} if days else {}
    table |= {"expires": _in_days(lasts)} if lasts is not None else {}
    body = tomli_w.dumps(table)
    if as_json:
        print_json({"name": name, "section": section, "key": key, "toml": body} | _shown(table))
    else:
        sys.stdout.write(
            f"{key}\n\n# In [{section}.{name}]; its other lines stay, but for an earlier `expires`.\n{body}"
        )


@app.command("list", epilog=LIST_EXAMPLES)
def list_(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """List the configured keys and tokens by name, and when each of them ends."""
    from pegboard.apps.cli.configs import own_files_agreed
    from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
    from pegboard.clock import SYSTEM_CLOCK
    from pegboard.gateways.key_expiry import lifetimes
    from pegboard.settings import load_settings

    now = SYSTEM_CLOCK.time()
    found = [
        {
            "section": each.section,
            "name": each.name,
            "previous": each.previous,
            "expires": None if each.expires is None else _text(datetime.fromtimestamp(each.expires, UTC)),
            "state": each.state(now),
        }
        for each in lifetimes(load_settings(config or own_files_agreed()))
    ]
    if as_json:
        print_json({"keys": found})
    elif not found:
        stdout().print(plain("No keys are configured. `pegboard keys new NAME` makes one."))
    else:
        made = table("", "section", "name", "ends", "state")
        for each in found:
            name = f"{each['name']}{' (previous)' if each['previous'] else ''}"
            made.add_row(*cells(str(each["section"]), name, str(each["expires"] or "never"), str(each["state"])))
        stdout().print(made)


@app.command("check", epilog=CHECK_EXAMPLES)
def check(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """Read a key from standard input and print its name and rights. Exits with 1 if the key is unknown."""
    from pegboard.apps.cli.configs import own_files_agreed
    from pegboard.apps.cli.output import print_json
    from pegboard.gateways.llm.proxy.keys import Keys
    from pegboard.gateways.mcp.transport.auth import Access
    from pegboard.settings import load_settings

    settings = load_settings(config or own_files_agreed())
    configured = settings.llm.keys
    key = (getpass("Key: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    name = Keys(configured).name_of(key)
    holder = Access(settings).holder_of(key)
    if holder is not None:
        only = None if holder.only is None else list(holder.only)
        if as_json:
            print_json({"name": holder.name, "tools": only, "scopes": sorted(holder.scopes)})
        else:
            sys.stdout.write(f"{holder.name}, for the tools {', '.join(only) if only is not None else '*'} of MCP\n")
        return
    if name is None:
        raise PegboardError(
            "The configuration does not contain this key.", remedy="`pegboard keys new NAME` makes one."
        )
    upstreams = configured[name].upstreams
    if as_json:
        print_json({"name": name, "upstreams": upstreams, "policy": configured[name].policy()})
    else:
        sys.stdout.write(f"{name}, for the upstreams {', '.join(upstreams)}\n")


def _in_days(days: int) -> datetime:
    """Raises ConfigError for an end after the year 9999."""
    try:
        return datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
    except OverflowError as error:
        raise ConfigError(f"{days} days are too many.", remedy="Leave the option out for a key without end.") from error


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _shown(table: Mapping[str, object]) -> dict[str, object]:
    return {name: _text(value) if isinstance(value, datetime) else value for name, value in table.items()}


def _patterns(text: str) -> list[str]:
    return [each for each in map(str.strip, text.split(",")) if each]


def _checked(name: str, document: Mapping[str, object]) -> None:
    """Raises ConfigError for a name or pattern that the configuration would not accept."""
    from pydantic import ValidationError

    from pegboard.settings import Settings
    from pegboard.settings.client_configs import sentences

    try:
        Settings.model_validate(document)
    except ValidationError as error:
        raise ConfigError(
            f"A key cannot be named {name!r}: {sentences(error)}.", remedy="Use letters, digits and ._@-"
        ) from error
