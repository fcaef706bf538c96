"""`pegboard whoami`: lists the sign-ins at servers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from pegboard.settings import Settings
    from pegboard.upstreams.oauth.credentials import CredentialSummary

EXAMPLES = examples("Where am I signed in, with which rights, and until when?", "pegboard whoami")


def whoami(config: Configs = None, as_json: Json = False, verbose: Verbose = False) -> None:
    """List the sign-ins at servers: where, with which scopes, until when, and where the tokens are kept.

    Tokens are never shown. `pegboard doctor` says which servers wait for a sign-in.
    """
    from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
    from pegboard.gateways.users import names_of
    from pegboard.upstreams.oauth.sign_ins import credential_store

    settings = settings_of(config)
    found, names = credential_store(settings).all(), names_of(settings)
    if as_json:
        print_json({"sign_ins": [each.shown() | {"user_name": names.get(each.user, "")} for each in found]})
        return
    if not found:
        stdout().print(plain("Nobody is signed in anywhere. `pegboard login NAME` signs in to a server."))
        return
    now = SYSTEM_CLOCK.time()
    made = table("", "server", "user", "authorization server", "scopes", "token", "kept in")
    for each in found:
        scopes = ", ".join(each.scopes) or "–"
        more = f", and is asked for {', '.join(each.wanted)}" if set(each.wanted) - set(each.scopes) else ""
        whose = names.get(each.user, each.user)
        made.add_row(
            *cells(each.server, whose or "all", each.issuer, f"{scopes}{more}", state(each, now, whose), each.place)
        )
    stdout().print(made)


def state(summary: CredentialSummary, now: float, user: str = "") -> str:
    """How long the token holds, in words."""
    again = f"has ended: `pegboard login {summary.server}{f' --user {user}' if user else ''}`"
    if summary.ended:
        return again
    if summary.expires_at is None:
        return "does not expire"
    until = datetime.fromtimestamp(summary.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    if summary.renewable:
        return f"is renewed before {until}" if summary.expires_at > now else "is renewed with the next request"
    return f"holds until {until}" if summary.expires_at > now else again


def settings_of(files: Sequence[Path] | None) -> Settings:
    """The settings of these files; of the user's own configuration if there are none."""
    from pegboard.apps.cli.configs import own_files_agreed
    from pegboard.settings import load_settings

    return load_settings(files or own_files_agreed())
