"""Signing in at a server: the SDK's OAuth flow, with a person in a browser, on another device, or with none.

401 ─► resource metadata ─► authorization server ─► CIMD, registration or given client ─► PKCE, a person ─► tokens
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from pydantic import ValidationError

from pegboard.errors import PegboardError
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.terminal import printable
from pegboard.upstreams.oauth import client_records
from pegboard.upstreams.oauth.browser_grant import browser_login, chosen_server
from pegboard.upstreams.oauth.credentials import CredentialKey, OAuthCredentials, expiry
from pegboard.upstreams.oauth.device_grant import DEVICE_GRANT, DeviceLogin
from pegboard.upstreams.oauth.first_requests import begin
from pegboard.upstreams.oauth.guarded_transport import SECONDS, GuardedTransport, guarded_client
from pegboard.upstreams.oauth.held_tokens import HeldTokens
from pegboard.upstreams.oauth.person import Person

WHY_CHARACTERS = 300
STATUS = re.compile(r"[A-Z][a-z ]+ failed:? \(?\d{3}\)?")
"""How the SDK's errors begin that quote an answer of the authorization server."""
REGISTER = (
    'Have a client registered by the operators, and write "oauth": {"client_id": "…"} in the entry of the server.'
)
SDK_LOGGER = logging.getLogger("mcp.client.auth.oauth2")


async def login(
    key: CredentialKey,
    settings: OAuthSettings,
    person: Person | None,
    *,
    now: Callable[[], float],
    before: OAuthCredentials | None = None,
    scopes: tuple[str, ...] = (),
) -> OAuthCredentials:
    """Credentials for a server and a user, with these ``scopes`` besides those that the server names.

    ``before`` are the old ones: their registration is used again, and so are their scopes. Without a ``person``, the
    client signs in by itself. Raises PegboardError with what went wrong.
    """
    old = (*before.scopes, *before.wanted) if before else ()
    extra = tuple(dict.fromkeys((*settings.scopes, *scopes, *old)))
    async with AsyncExitStack() as stack:
        known = before if before is not None and client_records.is_enough(before.client, extra) else None
        provider, held, transport = await _flow(stack, key, settings, person, known)
        _prepare(provider, settings, extra)
        client = await stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, auth=provider, timeout=httpx2.Timeout(SECONDS))
        )
        with _failures(key.server, settings, held):
            response = await begin(client, key.url, held)
    context = provider.context
    if held.tokens is None or context.client_info is None:
        raise PegboardError(
            f"Server {key.server!r} does not ask for a sign-in: it answered with status {response.status_code}."
        )
    at = now()
    return OAuthCredentials(
        server=key.server,
        url=key.url,
        user=key.user,
        tokens=held.tokens,
        client=context.client_info,
        metadata=context.oauth_metadata,
        resource=context.protected_resource_metadata,
        obtained_at=at,
        expires_at=expiry(held.tokens, at),
    )


async def _flow(
    stack: AsyncExitStack,
    key: CredentialKey,
    settings: OAuthSettings,
    person: Person | None,
    known: OAuthCredentials | None,
) -> tuple[OAuthClientProvider, HeldTokens, httpx2.AsyncBaseTransport]:
    """The SDK's flow for the configured grant, and the transport of its requests. ``known`` has a client to use
    again."""
    server, url = key.server, key.url
    transport = GuardedTransport(server, url, private=settings.private_addresses)
    if settings.grant == "client_credentials":
        held = HeldTokens()
        return _own_account(url, settings, held), held, transport
    if person is None:
        raise PegboardError(f"Signing in to {server!r} needs a person.", remedy=f"Run `pegboard login {server}`.")
    if settings.grant == "device_code":
        client = client_records.given(settings, None) or client_records.registered(known, DEVICE_GRANT)
        held = HeldTokens(client=client)
        asking = await stack.enter_async_context(guarded_client(server, url, private=settings.private_addresses))
        metadata = client_records.metadata(None, DEVICE_GRANT)
        device = DeviceLogin(url, metadata, held, asking, person, settings.issuer)
        return device, held, device.polling(transport)
    provider, held = await browser_login(stack, server, url, settings, person, known)
    return provider, held, transport


def _own_account(url: str, settings: OAuthSettings, held: HeldTokens) -> OAuthClientProvider:
    return _OwnAccount(url, held, settings.client_id or "", settings.client_secret or "", issuer=settings.issuer)


class _OwnAccount(ClientCredentialsOAuthProvider):
    """The SDK's flow, which ends if the server does not name the configured issuer."""

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return chosen_server(advertised, self._issuer)


def _prepare(provider: OAuthClientProvider, settings: OAuthSettings, extra: tuple[str, ...]) -> None:
    """Ask for scopes besides those of the challenge, and authenticate a configured client in a way that the
    authorization server supports."""
    context = provider.context
    context.client_metadata = client_records.asking_for(context.client_metadata, extra)
    inner = provider._perform_authorization  # the SDK's own extensions replace it

    async def perform() -> httpx2.Request:
        if context.client_info is not None and settings.client_secret is not None:
            supported = context.oauth_metadata and context.oauth_metadata.token_endpoint_auth_methods_supported
            method = settings.client_authentication or client_records.authentication(supported or [])
            context.client_info = context.client_info.model_copy(update={"token_endpoint_auth_method": method})
        return await inner()

    provider._perform_authorization = perform  # type: ignore[method-assign]


@contextmanager
def _failures(server: str, settings: OAuthSettings, held: HeldTokens) -> Iterator[None]:
    """Turn the flow's errors into one of ours, without secrets and without their causes, which quote whole answers."""
    quiet = _Quiet()
    SDK_LOGGER.addFilter(quiet)
    try:
        yield
    except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as error:
        secrets = held.secrets | {each for each in [settings.client_secret] if each}
        raise PegboardError(
            f"Signing in to {server!r} failed: {_why(error, secrets)}.",
            remedy=REGISTER if isinstance(error, OAuthRegistrationError) else "",
        ) from None
    except ValidationError:
        raise PegboardError(
            f"Signing in to {server!r} failed: the authorization server's answer is not valid."
        ) from None
    except httpx2.HTTPError as error:
        raise PegboardError(f"Signing in to {server!r} failed: {str(error) or type(error).__name__}.") from None
    finally:
        SDK_LOGGER.removeFilter(quiet)


class _Quiet(logging.Filter):
    """Drops the tracebacks that the SDK logs of errors which it also raises: they quote whole answers."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not record.exc_info


def _why(error: Exception, secrets: set[str]) -> str:
    """What the SDK's error says. Of an answer that it quotes, only OAuth's own fields (RFC 6749, 5.2; RFC 7591, 3.2.2):
    the rest may repeat what was sent."""
    text = str(error)
    if quoting := STATUS.match(text):
        text = quoting.group() + _fields(text[quoting.end() :])
    text = next(iter(text.splitlines()), "")
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return printable(text[:WHY_CHARACTERS]).rstrip(".")


def _fields(answer: str) -> str:
    try:
        said = json.loads(answer[answer.index("{") :])
    except ValueError:
        return ""
    words = [said[name] for name in ("error", "error_description") if isinstance(said.get(name), str)]
    return "".join(f": {each}" for each in words)
