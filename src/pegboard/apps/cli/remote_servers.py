"""The servers of a configuration that a person can sign in to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pegboard.apps.cli.configs import Configured, given_or_usual
from pegboard.errors import ConfigError
from pegboard.settings import Settings
from pegboard.settings.secret_sources import SecretReader
from pegboard.settings.server_spec import ServerSpec


def remote_server(configured: Configured, name: str) -> ServerSpec:
    """The server of a name, with its variables and secrets. Raises ConfigError if nobody can sign in to it."""
    known = configured.settings.enabled_servers
    if name not in known:
        remote = [each.name for each in known.values() if each.is_http]
        raise ConfigError(
            f"No enabled server is called {name!r}.",
            remedy=f"Servers with a URL: {', '.join(remote) or 'none'}. `--config FILE` names another configuration.",
        )
    spec = known[name]
    if not spec.is_http:
        raise ConfigError(
            f"Server {name!r} is a command: only servers with a URL are signed in to.",
            remedy="Put its token into the env of its entry.",
        )
    if spec.has_credentials and spec.oauth is None:
        raise ConfigError(
            f"The entry of server {name!r} has a token or key, which is used instead of a sign-in.",
            remedy='Remove it, or write "oauth": true beside it.',
        )
    if spec.exchanges_tokens:
        raise ConfigError(
            f"Nobody signs in to server {name!r}: its tokens are got in exchange for its callers' own.",
            remedy="Call it with a token of the issuer.",
        )
    return spec.expanded(os.environ, SecretReader(os.environ))


def user_at(spec: ServerSpec, name: str, settings: Settings) -> str:
    """The id of a user who has an own connection to a server. Raises ConfigError if there is none."""
    from pegboard.gateways.users import user_named

    if not spec.per_user:
        raise ConfigError(
            f"Server {spec.name!r} has one connection for all its users.",
            remedy="Sign in without --user, or write per_user = true into its entry.",
        )
    return user_named(name, settings)


def configuration(files: Sequence[Path] | None) -> Configured:
    return given_or_usual(files or [])
