"""Signing in at a server: the SDK's OAuth flow, with a person in a browser, on another device, or with none.

401 ─► resource metadata ─► authorization server ─► CIMD, registration or given client ─► PKCE, a person ─► tokens
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from mcp_types.version import LATEST_PROTOCOL_VERSION
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth.credentials import OAuthCredentials, expiry
from pegboard.upstreams.oauth.device_grant import DEVICE_GRANT, DeviceLogin, ShowCode
from pegboard.upstreams.oauth.guarded_transport import GuardedTransport, guarded_client
from pegboard.upstreams.oauth.held_tokens import HeldTokens
from pegboard.upstreams.oauth.loopback import Loopback, loopback

CLIENT_NAME = "Pegboard"
PATIENCE = 300.0
"""Seconds that a person has to sign in."""
PKCE = "S256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """How to reach the one who signs in. ``open_url`` sends a browser, ``show_code`` tells of a code to enter."""

    open_url: Callable[[str], Awaitable[None]]
    show_code: ShowCode
    seconds: float = PATIENCE


async def login(
    server: str,
    url: str,
    settings: OAuthSettings,
    person: Person | None,
    *,
    now: Callable[[], float],
    before: OAuthCredentials | None = None,
    scopes: tuple[str, ...] = (),
) -> OAuthCredentials:
    """Credentials for the server at ``url``, with these ``scopes`` besides those that it names.

    ``before`` are the old ones: their registration is used again, and so are their scopes. Without a ``person``, the
    client signs in by itself. Raises PegboardError with what went wrong.
    """
    extra = (*settings.scopes, *scopes, *((*before.scopes, *before.wanted) if before else ()))
    async with AsyncExitStack() as stack:
        attempt = await _attempt(stack, server, url, settings, person, before)
        _add_scopes(attempt.provider, extra)
        client = await stack.enter_async_context(
            httpx2.AsyncClient(transport=attempt.transport, auth=attempt.provider, timeout=None)
        )
        try:
            response = await client.send(_first_request(url))
        except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as error:
            raise PegboardError(f"Signing in to {server!r} failed: {_last(error)}.") from error
        except ValidationError as error:
            raise PegboardError(
                f"Signing in to {server!r} failed: the authorization server's answer is not valid."
            ) from error
        except httpx2.HTTPError as error:
            raise PegboardError(f"Signing in to {server!r} failed: {str(error) or type(error).__name__}.") from error
    held, context = attempt.held, attempt.provider.context
    if held.tokens is None or context.client_info is None:
        raise PegboardError(
            f"Server {server!r} does not ask for a sign-in: it answered with status {response.status_code}."
        )
    at = now()
    return OAuthCredentials(
        server=server,
        url=url,
        tokens=held.tokens,
        client=context.client_info,
        metadata=context.oauth_metadata,
        resource=context.protected_resource_metadata,
        obtained_at=at,
        expires_at=expiry(held.tokens, at),
    )


@dataclass(frozen=True, slots=True)
class _Attempt:
    provider: OAuthClientProvider
    held: HeldTokens
    transport: httpx2.AsyncBaseTransport


async def _attempt(
    stack: AsyncExitStack,
    server: str,
    url: str,
    settings: OAuthSettings,
    person: Person | None,
    before: OAuthCredentials | None,
) -> _Attempt:
    transport = GuardedTransport(server, url, private=settings.private_addresses)
    if settings.grant == "client_credentials":
        held = HeldTokens()
        own = ClientCredentialsOAuthProvider(
            url, held, settings.client_id or "", settings.client_secret or "", issuer=settings.issuer
        )
        return _Attempt(own, held, transport)
    if person is None:
        raise PegboardError(f"Signing in to {server!r} needs a person.", remedy=f"Run `pegboard login {server}`.")
    if settings.grant == "device_code":
        held = HeldTokens(client=_given(settings, None) or _registered(before, DEVICE_GRANT))
        asking = await stack.enter_async_context(guarded_client(server, url, private=settings.private_addresses))
        provider = DeviceLogin(url, _metadata(None, DEVICE_GRANT), held, asking, person.show_code, person.seconds)
        return _Attempt(provider, held, provider.polling(transport))
    known = _registered(before, "authorization_code")
    waiting = await _listening(stack, server, settings, known)
    held = HeldTokens(client=_given(settings, waiting) or (known if _returns_to(known, waiting) else None))

    async def send(authorization_url: str) -> None:
        _check_pkce(server, flow)
        waiting.expect(authorization_url)
        await person.open_url(authorization_url)

    async def returned() -> AuthorizationCodeResult:
        return await waiting.answer(person.seconds)

    flow = _Flow(
        url,
        _metadata(waiting.url, "authorization_code"),
        held,
        send,
        returned,
        client_metadata_url=settings.client_metadata_url,
    )
    flow.issuer = settings.issuer
    return _Attempt(flow, held, transport)


class _Flow(OAuthClientProvider):
    """The SDK's flow, with the configured issuer if there is one, and with scopes that are always asked for."""

    issuer: str | None = None

    def _select_authorization_server(self, advertised: list[str]) -> str:
        if self.issuer is None:
            return advertised[0]
        found = [each for each in advertised if each.rstrip("/") == self.issuer.rstrip("/")]
        if not found:
            raise OAuthFlowError(f"it is to be done at {self.issuer}, which the server does not name")
        return found[0]


def _add_scopes(provider: OAuthClientProvider, extra: tuple[str, ...]) -> None:
    """The SDK replaces the scopes by those of the challenge; these are asked for besides."""
    if not extra:
        return
    inner = provider._perform_authorization  # the SDK's own extensions replace it

    async def perform() -> httpx2.Request:
        metadata = provider.context.client_metadata
        metadata.scope = " ".join(dict.fromkeys([*(metadata.scope or "").split(), *extra]))
        return await inner()

    provider._perform_authorization = perform  # type: ignore[method-assign]


async def _listening(
    stack: AsyncExitStack, server: str, settings: OAuthSettings, known: OAuthClientInformationFull | None
) -> Loopback:
    """On the port of the registration, so that it can be used again; on any other one if that is taken."""
    registered = [urlsplit(str(each)).port for each in (known.redirect_uris or [])] if known else []
    for port in dict.fromkeys([settings.callback_port, *registered] if settings.callback_port else [*registered]):
        try:
            return await stack.enter_async_context(loopback(server, port or 0))
        except OSError as error:
            if port == settings.callback_port:
                raise PegboardError(
                    f"Port {port}, to which the browser would return, is in use.",
                    remedy="End the program that uses it, or change callback_port.",
                ) from error
    return await stack.enter_async_context(loopback(server))


def _given(settings: OAuthSettings, waiting: Loopback | None) -> OAuthClientInformationFull | None:
    """The configured client."""
    if settings.client_id is None:
        return None
    return OAuthClientInformationFull.model_validate(
        {
            "client_id": settings.client_id,
            "client_secret": settings.client_secret,
            "redirect_uris": [waiting.url] if waiting else None,
            "token_endpoint_auth_method": "client_secret_post" if settings.client_secret else "none",
            "issuer": settings.issuer,
        }
    )


def _registered(before: OAuthCredentials | None, grant: str) -> OAuthClientInformationFull | None:
    if before is None or before.client.issuer is None or grant not in before.client.grant_types:
        return None
    return before.client


def _returns_to(client: OAuthClientInformationFull | None, waiting: Loopback) -> bool:
    return client is not None and waiting.url in map(str, client.redirect_uris or [])


def _metadata(redirect: str | None, grant: str) -> OAuthClientMetadata:
    return OAuthClientMetadata.model_validate(
        {
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect] if redirect else None,
            "grant_types": [grant, "refresh_token"],
            "response_types": ["code"] if redirect else [],
            "token_endpoint_auth_method": "none",
        }
    )


def _check_pkce(server: str, provider: OAuthClientProvider) -> None:
    """Raises PegboardError if the authorization server's metadata do not promise PKCE (MCP, authorization code
    protection)."""
    metadata = provider.context.oauth_metadata
    if metadata is not None and PKCE not in (metadata.code_challenge_methods_supported or []):
        raise PegboardError(
            f"The authorization server of {server!r} does not say that it supports PKCE ({PKCE}), so a code could be "
            "stolen.",
            remedy="Ask its operators, or use a token in the headers of its entry.",
        )


def _first_request(url: str) -> httpx2.Request:
    """The introduction that a client begins with; its 401 begins the flow."""
    params: dict[str, Any] = {
        "protocolVersion": LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": CLIENT_NAME.lower(), "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": LATEST_PROTOCOL_VERSION,
    }
    return httpx2.Request("POST", url, content=json.dumps(body), headers=headers)


def _last(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")[:300]
