"""The OAuth client that Pegboard is: the configured one, one that is registered already, or one to register."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import PrivateAttr

from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth.credentials import OAuthCredentials

CLIENT_NAME = "Pegboard"
BASIC, POST = "client_secret_basic", "client_secret_post"


def given(settings: OAuthSettings, redirect: str | None) -> OAuthClientInformationFull | None:
    """The configured client; None if there is none."""
    if settings.client_id is None:
        return None
    return OAuthClientInformationFull.model_validate(
        {
            "client_id": settings.client_id,
            "client_secret": settings.client_secret,
            "redirect_uris": [redirect] if redirect else None,
            "token_endpoint_auth_method": settings.client_authentication
            or ("none", BASIC)[bool(settings.client_secret)],
            "issuer": settings.issuer,
        }
    )


def authentication(supported: Sequence[str]) -> str:
    """How a client with a secret authenticates; `client_secret_basic` if the metadata do not say (RFC 8414, 2).

    >>> authentication(["client_secret_post", "private_key_jwt"])
    'client_secret_post'
    """
    return POST if POST in supported and BASIC not in supported else BASIC


def is_enough(client: OAuthClientInformationFull, scopes: Sequence[str]) -> bool:
    """Whether a client may ask for these scopes; some are registered for a few only."""
    return client.scope is None or set(scopes) <= set(client.scope.split())


class _MoreScopes(OAuthClientMetadata):
    """Keeps scopes when the SDK replaces them by those of a challenge."""

    _extra: tuple[str, ...] = PrivateAttr(())

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "scope":
            value = " ".join(dict.fromkeys([*(value or "").split(), *self._extra])) or None
        super().__setattr__(name, value)


def asking_for(client: OAuthClientMetadata, extra: tuple[str, ...]) -> OAuthClientMetadata:
    """The same client, which asks for ``extra`` besides what servers want."""
    made = _MoreScopes.model_validate(client.model_dump())
    made._extra = extra
    return made


def registered(before: OAuthCredentials | None, grant: str) -> OAuthClientInformationFull | None:
    """The client of an earlier sign-in, if it may use this grant: an authorization server must not have to register a
    new one for each sign-in."""
    if before is None or before.client.issuer is None or grant not in before.client.grant_types:
        return None
    return before.client


def metadata(redirect: str | None, grant: str) -> OAuthClientMetadata:
    """What a registration says (RFC 7591)."""
    return OAuthClientMetadata.model_validate(
        {
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect] if redirect else None,
            "grant_types": [grant, "refresh_token"],
            "response_types": ["code"] if redirect else [],
            "token_endpoint_auth_method": "none",
        }
    )
