"""Requests to the token and revocation endpoints of an authorization server, besides those of the SDK's flow."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata, OAuthToken
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.upstreams.oauth.credentials import OAuthCredentials, expiry
from pegboard.upstreams.oauth.guarded_transport import guarded_client
from pegboard.upstreams.oauth.held_tokens import HeldTokens

OK = 200
REFUSALS = (400, 401)
PASSING = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
"""Errors of a token endpoint that say nothing about the refresh token."""
ENDED = re.compile(r"\w*(grant|refresh_token|client)\w*")
"""Error codes that say that nothing can be renewed, of servers that answer them with status 200: `bad_refresh_token` of
GitHub, `invalid_refresh_token` of Slack."""


class SignInEnded(PegboardError):  # noqa: N818
    """The authorization server does not renew these credentials."""


class AnotherAnswer(PegboardError):  # noqa: N818
    """The authorization server answers, but neither with tokens nor with a refusal."""


def client_shown(client_id: str, secret: str, *, in_form: bool) -> tuple[dict[str, str], httpx2.Auth]:
    """How a client shows its secret (RFC 6749, 2.3.1): what it adds to a form, and to the request. One without a
    secret names itself."""
    if in_form or not secret:
        return {"client_id": client_id} | ({"client_secret": secret} if secret else {}), httpx2.Auth()
    return {}, httpx2.BasicAuth(quote(client_id, safe=""), quote(secret, safe=""))  # each is form-encoded first


async def renewed(old: OAuthCredentials, *, now: float, private: bool = False) -> OAuthCredentials:
    """New tokens for the refresh token (RFC 6749, 6), which is replaced if the server sends another.

    Raises SignInEnded; httpx2.HTTPError or PegboardError if the server cannot be asked now.
    """
    if old.tokens.refresh_token is None:
        raise SignInEnded("The token has ended, and it came without one to renew it.")
    provider = OAuthClientProvider(old.url, _metadata(old), HeldTokens(old.tokens, old.client))
    context = provider.context
    context.current_tokens, context.client_info = old.tokens, old.client
    context.oauth_metadata, context.protected_resource_metadata = old.metadata, old.resource
    request = await provider._refresh_token()  # the SDK's own extensions build on it
    async with guarded_client(old.server, old.url, private=private) as client:
        response = await client.send(request)
    if _is_refused(response):
        raise SignInEnded("The sign-in has ended or was revoked.")
    if response.status_code != OK:
        raise AnotherAnswer(f"The authorization server answered with status {response.status_code}.")
    tokens = await _renewed_tokens(provider, response)
    return old.model_copy(update={"tokens": tokens, "obtained_at": now, "expires_at": expiry(tokens, now)})


async def _renewed_tokens(provider: OAuthClientProvider, response: httpx2.Response) -> OAuthToken:
    """Raises AnotherAnswer; the SDK would log the whole answer, which may contain tokens."""
    try:
        OAuthToken.model_validate_json(response.content)
    except ValidationError:
        raise AnotherAnswer("The authorization server answered with something else than tokens.") from None
    await provider._handle_refresh_response(response)
    tokens = provider.context.current_tokens
    if tokens is None:
        raise AnotherAnswer("The authorization server answered with something else than tokens.")
    return tokens


def _is_refused(response: httpx2.Response) -> bool:
    """Whether the authorization server does not renew the tokens. A page without an error code (RFC 6749, 5.2) is that
    of a proxy before it, and tokens are no refusal, whatever stands beside them."""
    answer = _answer(response)
    error = str(answer.get("error") or "")
    if response.status_code == OK:
        return ENDED.fullmatch(error) is not None and not answer.get("access_token")
    is_page = not error and response.headers.get("content-type", "").lower().startswith("text/html")
    return response.status_code in REFUSALS and error not in PASSING and not is_page


def _answer(response: httpx2.Response) -> Mapping[str, Any]:
    """The object that a token endpoint answers with; empty if it is none."""
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, Mapping) else {}


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
            answered = await _revoked(client, str(metadata.revocation_endpoint), data, headers)
            done = done and answered
    return done


async def _revoked(client: httpx2.AsyncClient, url: str, data: dict[str, str], headers: dict[str, str]) -> bool:
    """An empty secret means none (RFC 6749, 2.3.1); the MCP SDK's own server wants that form."""
    forms = [data] if "client_secret" in data or "Authorization" in headers else [data, data | {"client_secret": ""}]
    for form in forms:
        with suppress(httpx2.HTTPError, PegboardError):
            response = await client.post(url, data=form, headers=headers)
            if response.status_code == OK:
                return True
    return False


def _metadata(credentials: OAuthCredentials) -> OAuthClientMetadata:
    client = credentials.client
    with suppress(ValidationError):
        return OAuthClientMetadata.model_validate(
            {"redirect_uris": client.redirect_uris or None, "scope": credentials.tokens.scope}
        )
    return OAuthClientMetadata(redirect_uris=None)
