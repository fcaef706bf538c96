"""`pegboard login`: signs in to a server by OAuth."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples

if TYPE_CHECKING:
    from pegboard.upstreams.oauth.person import Person

EXAMPLES = examples(
    "Sign in to a server with the browser",
    "pegboard login notion",
    "On a machine without a browser: enter a code on another device",
    "pegboard login notion --device",
    "With a browser on another machine: paste the address at which it ends",
    "pegboard login notion --no-browser",
    "For one user of a gateway, who consents in their own browser",
    "pegboard login tickets --user ann --no-browser",
    "Allow more than the server asks for at first",
    "pegboard login github --scope repo --scope read:org",
)
OPEN_SECONDS = 2.0
"""Time in which a browser that cannot be started says so."""
PLACES = {"keyring": "the system's keychain", "file": "an encrypted file"}

Server = Annotated[str, typer.Argument(metavar="NAME", help="Name of a configured server with a URL.")]


def login(
    name: Server,
    device: Annotated[
        bool, typer.Option("--device", help="Show a code to enter on another device, instead of opening a browser.")
    ] = False,
    no_browser: Annotated[
        bool,
        typer.Option(
            "--no-browser",
            help="Print the address of the page instead of opening it; take the address at which it ends from stdin.",
        ),
    ] = False,
    scope: Annotated[
        list[str] | None, typer.Option(metavar="SCOPE", help="Ask for this scope, too. Can be given more than once.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For this user of a gateway alone, at a server with per_user: a name in [access], or else a subject "
            "of the issuer.",
        ),
    ] = None,
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Sign in to a server by OAuth, and keep its tokens where the gateways of this user find them.

    Gateways that run already notice it within seconds. The browser returns to an address of this machine. By SSH, use
    --device, or --no-browser and paste the address at which the browser ends. With --user, the account is that of
    whoever consents: let it be the user.
    """
    from pegboard.apps.cli.output import plain, print_json, stdout
    from pegboard.apps.cli.remote_servers import configuration, remote_server, user_at
    from pegboard.clock import SYSTEM_CLOCK
    from pegboard.upstreams.oauth.sign_ins import SignIns

    configured = configuration(config)
    spec = remote_server(configured, name)
    whose = "" if user is None else user_at(spec, user, configured.settings)
    sign_ins = SignIns(configured.settings, SYSTEM_CLOCK)
    asked = sign_ins.sign_in(spec, person(no_browser=no_browser), user=whose, device=device, scopes=tuple(scope or ()))
    summary = asyncio.run(asked)
    if as_json:
        print_json(summary.shown())
        return
    scopes = f" Scopes: {', '.join(summary.scopes)}." if summary.scopes else ""
    of = "" if user is None else f" for {user}"
    said = (
        f"Signed in to {name!r}{of} at {summary.issuer or 'its own server'}.{scopes} Kept in {PLACES[summary.place]}."
    )
    stdout().print(plain(said), soft_wrap=True)


def person(*, no_browser: bool) -> Person:
    """The one at the terminal. All that is said to them goes to stderr."""
    from pegboard.apps.cli.browser import open_page
    from pegboard.apps.cli.terminal_input import lines
    from pegboard.upstreams.oauth.person import Person

    async def open_url(url: str) -> None:
        opened = not no_browser and await asyncio.to_thread(open_page, url, OPEN_SECONDS)
        say(f"{'Waiting for you in the browser. If no page has opened' if opened else 'To sign in'}, open\n{url}")
        if no_browser:
            say("If that browser is on another machine, paste the address at which it ends (http://127.0.0.1:…) here.")

    async def show_code(url: str, code: str) -> None:
        say(f"To sign in, open\n{url}\nand enter the code {code}")

    async def paste(take: Callable[[str], str]) -> None:
        async for line in lines():
            if line.strip() and (wrong := take(line)):
                say(wrong)

    return Person(open_url=open_url, show_code=show_code, paste=paste if no_browser else None)


def say(text: str) -> None:
    from pegboard.terminal import printable

    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()
