"""`pegboard logout`: ends sign-ins at servers, and forgets their tokens."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.errors import ConfigError, PegboardError

if TYPE_CHECKING:
    from pegboard.settings import Settings
    from pegboard.upstreams.oauth.credential_store import CredentialStore
    from pegboard.upstreams.oauth.credentials import CredentialSummary

EXAMPLES = examples(
    "Forget the tokens of a server, and have them revoked",
    "pegboard logout notion",
    "Forget all tokens",
    "pegboard logout --all",
)


def logout(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of a server.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All servers, of all users.")] = False,
    user: Annotated[
        str,
        typer.Option(metavar="NAME", help="The user whose tokens are meant, if not those that all share; or their id."),
    ] = "",
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Revoke the tokens of a server at its authorization server, and remove them from this machine.

    They are removed here even if they cannot be revoked there. Those that another process is renewing, and does not
    let go of, stay: the others are removed, and the exit code is 1.
    """
    from pegboard.apps.cli.output import plain, print_json, stdout
    from pegboard.apps.cli.whoami import settings_of
    from pegboard.gateways.users import ids_of
    from pegboard.upstreams.oauth.sign_ins import credential_store

    if (name is None) != everything:
        raise typer.BadParameter("give the name of a server, or --all")
    settings = settings_of(config)
    store = credential_store(settings)
    whose = ids_of(user, settings) if user else {""}
    found = [each for each in store.all() if everything or (each.server == name and each.user in whose)]
    if name is not None and not found:
        raise ConfigError(
            f"{user or 'Nobody'} is {'not ' if user else ''}signed in to {name!r}.",
            remedy="`pegboard whoami` lists all sign-ins.",
        )
    removed: list[tuple[CredentialSummary, bool]] = []
    kept: list[tuple[CredentialSummary, PegboardError]] = []
    for each in found:
        try:
            removed.append((each, asyncio.run(_end(store, each, private=_private(settings, each)))))
        except PegboardError as error:
            kept.append((each, error))
    if as_json:
        ended = [each.shown() | {"revoked": revoked} for each, revoked in removed]
        print_json({"removed": ended, "kept": [each.shown() | {"reason": str(why)} for each, why in kept]})
    else:
        for each, revoked in removed:
            there = "They are revoked." if revoked else "They could not be revoked at their authorization server."
            stdout().print(plain(f"The tokens of {each.server!r} are removed. {there}"), soft_wrap=True)
        for each, why in kept:
            stdout().print(plain(f"The tokens of {each.server!r} are not removed. {why}"), soft_wrap=True)
    if kept:
        raise typer.Exit(1)


def _private(settings: Settings, summary: CredentialSummary) -> bool:
    """Whether the entry of this server, at this address, allows an authorization server with a private one."""
    from pegboard.settings.secret_sources import SecretReader

    spec = settings.servers.get(summary.server)
    if spec is None or spec.oauth is None or not spec.oauth.private_addresses:
        return False
    try:
        return spec.expanded(os.environ, SecretReader(os.environ)).url == summary.url
    except PegboardError:  # a variable or secret of the entry is missing
        return False


async def _end(store: CredentialStore, summary: CredentialSummary, *, private: bool) -> bool:
    """Whether the tokens, which are gone from here first, were revoked. Raises PegboardError if they stay."""
    from pegboard.upstreams.oauth.token_requests import revoke

    with store.lock(summary.key):  # a renewal that is under way would bring them back
        try:
            credentials = store.read(summary.key)
        except PegboardError:
            credentials = None
        store.delete(summary.key)
    return credentials is not None and await revoke(credentials, private=private)
