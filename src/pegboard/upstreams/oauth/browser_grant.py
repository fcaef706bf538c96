"""Signing in with a browser on this machine: the SDK's authorization code flow with PKCE, and a loopback redirect."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull

from pegboard.errors import PegboardError
from pegboard.settings.issuer_settings import LOOPBACK
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.upstreams.oauth import client_records
from pegboard.upstreams.oauth.credentials import OAuthCredentials
from pegboard.upstreams.oauth.held_tokens import HeldTokens
from pegboard.upstreams.oauth.loopback import Loopback, loopback
from pegboard.upstreams.oauth.person import Person

PKCE = "S256"
GRANT = "authorization_code"


async def browser_login(
    stack: AsyncExitStack,
    server: str,
    url: str,
    settings: OAuthSettings,
    person: Person,
    before: OAuthCredentials | None,
) -> tuple[OAuthClientProvider, HeldTokens]:
    """The SDK's flow for a server, whose answer is waited for until ``stack`` is closed. Raises PegboardError."""
    known = client_records.registered(before, GRANT)
    waiting = person.returns or await _listening(stack, server, settings, known)
    held = HeldTokens(
        client=client_records.given(settings, waiting.url) or (known if _returns_to(known, waiting) else None)
    )

    async def send(authorization_url: str) -> None:
        _check_pkce(server, flow)
        _check_page(server, authorization_url)
        waiting.expect(authorization_url)
        await person.open_url(authorization_url)

    async def returned() -> AuthorizationCodeResult:
        pasted = asyncio.create_task(person.paste(waiting.take)) if person.paste else None
        try:
            return held.received(await waiting.answer(person.seconds))
        finally:
            if pasted is not None:
                pasted.cancel()

    flow = _Flow(
        url,
        client_records.metadata(waiting.url, GRANT),
        held,
        send,
        returned,
        client_metadata_url=settings.client_metadata_url,
    )
    flow.issuer = settings.issuer
    return flow, held


class _Flow(OAuthClientProvider):
    """The SDK's flow, which goes to the configured issuer if there is one."""

    issuer: str | None = None

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return chosen_server(advertised, self.issuer)


def chosen_server(advertised: list[str], issuer: str | None) -> str:
    """The authorization server to use. Raises OAuthFlowError if the configured one is not among them: a client that
    belongs to one server is never shown to another."""
    if issuer is None:
        return advertised[0]
    found = [each for each in advertised if each.rstrip("/") == issuer.rstrip("/")]
    if not found:
        raise OAuthFlowError(f"its issuer is configured as {issuer}, which the server does not name")
    return found[0]


async def _listening(
    stack: AsyncExitStack, server: str, settings: OAuthSettings, known: OAuthClientInformationFull | None
) -> Loopback:
    """On the port of the registration, so that it can be used again; on any other one if that is taken."""
    if settings.callback_port:
        try:
            return await stack.enter_async_context(loopback(server, settings.callback_port))
        except OSError as error:
            raise PegboardError(
                f"Port {settings.callback_port}, to which the browser would return, is in use.",
                remedy="End the program that uses it, or change callback_port.",
            ) from error
    registered = {urlsplit(str(each)).port for each in (known.redirect_uris or [])} if known else set()
    for port in filter(None, registered):
        try:
            return await stack.enter_async_context(loopback(server, port))
        except OSError:
            continue
    return await stack.enter_async_context(loopback(server))


def _returns_to(client: OAuthClientInformationFull | None, waiting: Loopback) -> bool:
    return client is not None and waiting.url in map(str, client.redirect_uris or [])


def _check_pkce(server: str, provider: OAuthClientProvider) -> None:
    """Raises PegboardError if the authorization server's metadata do not promise PKCE (MCP 2025-11-25, authorization
    code protection)."""
    metadata = provider.context.oauth_metadata
    if metadata is not None and PKCE not in (metadata.code_challenge_methods_supported or []):
        raise PegboardError(
            f"The authorization server of {server!r} does not say that it supports PKCE ({PKCE}), so a code could be "
            "stolen.",
            remedy="Ask its operators, or use a token in the headers of its entry.",
        )


def _check_page(server: str, authorization_url: str) -> None:
    """Raises PegboardError for a page that is not https, except on this machine: its code could be read on the way."""
    parts = urlsplit(authorization_url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise PegboardError(
            f"The page on which to sign in to {server!r} is not https, so it is not opened.",
            remedy="Ask the server's operators.",
        )
