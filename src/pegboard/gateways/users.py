"""The users of a gateway: the names of configured tokens, and the subjects of the issuer's."""

from __future__ import annotations

import hashlib

from pegboard.errors import ConfigError
from pegboard.settings import Settings

USER_CHARACTERS = 32


def user_id(*parts: str) -> str:
    """A user's id, as it may stand in names of files and records."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:USER_CHARACTERS]


def of_token(name: str) -> str:
    """The user who has the configured tokens of this name."""
    return user_id("access", name)


def of_subject(issuer: str, subject: str) -> str:
    """The user who is the subject of an issuer's tokens."""
    return user_id("issuer", issuer, subject)


def user_named(name: str, settings: Settings) -> str:
    """The id of a user: the one with the configured tokens of this name, else the issuer's subject. Raises ConfigError
    if there can be none."""
    if name in settings.access:
        return of_token(name)
    if settings.issuer is None:
        raise ConfigError(
            f"No user is called {name!r}.",
            remedy=f"Names in [access]: {', '.join(settings.access) or 'none'}; there is no [issuer].",
        )
    return of_subject(settings.issuer.url, name)


def ids_of(name: str, settings: Settings) -> set[str]:
    """All ids that this name may stand for, and the name itself, as it may be an id."""
    issuer = settings.issuer
    return {name, of_token(name)} | (
        {of_subject(issuer.url, name)} if issuer and name not in settings.access else set()
    )


def names_of(settings: Settings) -> dict[str, str]:
    """The names of users by their ids, as far as the configuration knows them."""
    return {of_token(name): name for name in settings.access}
