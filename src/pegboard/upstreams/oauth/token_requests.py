"""Requests to the token and revocation endpoints of an authorization server, besides those of the SDK's flow."""

from __future__ import annotations

from contextlib import suppress

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.upstreams.oauth.credentials import OAuthCredentials, expiry
from pegboard.upstreams.oauth.guarded_transport import guarded_client
from pegboard.upstreams.oauth.held_tokens import HeldTokens

OK = 200
REFUSALS = (400, 401)


class SignInEnded(PegboardError):  # noqa: N818
    """The authorization server does not renew these credentials."""


async def renewed(old: OAuthCredentials, *, now: float, private: bool = False) -> OAuthCredentials:
    """New tokens for the refresh token (RFC 6749, 6), which is replaced if the server sends another.

    Raises SignInEnded; httpx2.HTTPError or PegboardError if the server cannot be asked.
    """
    if old.tokens.refresh_token is None and "client_credentials" not in old.client.grant_types:
        raise SignInEnded("The sign-in has ended, and it cannot be renewed.")
    storage = HeldTokens(old.tokens, old.client)
    provider = OAuthClientProvider(old.url, _metadata(old), storage)
    context = provider.context
    context.current_tokens, context.client_info = old.tokens, old.client
    context.oauth_metadata, context.protected_resource_metadata = old.metadata, old.resource
    if old.tokens.refresh_token is None:
        raise SignInEnded("The token has ended.")
    request = await provider._refresh_token()  # the SDK's own extensions build on it
    async with guarded_client(old.server, old.url, private=private) as client:
        response = await client.send(request)
    if response.status_code in REFUSALS:
        raise SignInEnded("Its sign-in was refused: it has ended or was revoked.")
    if response.status_code != OK:
        raise PegboardError(f"The authorization server answered with status {response.status_code}.")
    if not await provider._handle_refresh_response(response):
        raise PegboardError("The authorization server answered with something else than tokens.")
    tokens = context.current_tokens
    return old.model_copy(update={"tokens": tokens, "obtained_at": now, "expires_at": expiry(tokens, now)})


async def revoke(credentials: OAuthCredentials, *, private: bool = False) -> bool:
    """Ask the authorization server to forget the tokens (RFC 7009); whether it said that it has."""
    metadata = credentials.metadata
    if metadata is None or metadata.revocation_endpoint is None:
        return False
    provider = OAuthClientProvider(credentials.url, _metadata(credentials), HeldTokens())
    provider.context.client_info = credentials.client
    tokens = credentials.tokens
    kinds = {"refresh_token": tokens.refresh_token, "access_token": tokens.access_token}
    done = True
    async with guarded_client(credentials.server, credentials.url, private=private) as client:
        for kind, token in kinds.items():
            if token is None:
                continue
            data = {"token": token, "token_type_hint": kind, "client_id": credentials.client.client_id}
            data, headers = provider.context.prepare_token_auth(data, {})
            answered = False
            with suppress(httpx2.HTTPError, PegboardError):
                response = await client.post(str(metadata.revocation_endpoint), data=data, headers=headers)
                answered = response.status_code == OK
            done = done and answered
    return done


def _metadata(credentials: OAuthCredentials) -> OAuthClientMetadata:
    client = credentials.client
    with suppress(ValidationError):
        return OAuthClientMetadata.model_validate(
            {"redirect_uris": client.redirect_uris or None, "scope": credentials.tokens.scope}
        )
    return OAuthClientMetadata(redirect_uris=None)
