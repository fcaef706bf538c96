"""Asks a server, without credentials, whether it wants a sign-in, and whether it is one that works."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    handle_auth_metadata_response,
    handle_protected_resource_response,
)
from mcp.shared.auth import OAuthMetadata

from pegboard.errors import PegboardError
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.terminal import printable
from pegboard.upstreams.oauth.browser_grant import PKCE
from pegboard.upstreams.oauth.challenges import UNAUTHORIZED
from pegboard.upstreams.oauth.first_requests import introduction
from pegboard.upstreams.oauth.guarded_transport import guarded_client

SERVER_ERROR = 500
SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """``obstacle`` is the reason why Pegboard could not use the server; empty if it can, after a sign-in if needed."""

    wants_sign_in: bool = False
    obstacle: str = ""


async def server_access(spec: ServerSpec) -> ServerAccess:
    """What a server with a URL answers to whoever has no token. ``spec`` is `expanded`; raises nothing."""
    oauth = spec.oauth or OAuthSettings()
    try:
        async with guarded_client(
            spec.name, spec.url or "", private=oauth.private_addresses, seconds=SECONDS
        ) as client:
            async with _asked(client, spec) as response:
                status, challenge = response.status_code, response
            if status >= SERVER_ERROR:
                return ServerAccess(obstacle=f"it answered with status {status}")
            if status != UNAUTHORIZED:
                return ServerAccess()
            return ServerAccess(wants_sign_in=True, obstacle=await _obstacle(client, spec, oauth, challenge))
    except PegboardError as error:
        return ServerAccess(wants_sign_in=True, obstacle=error.message.rstrip("."))
    except httpx2.HTTPError as error:
        return ServerAccess(obstacle=f"it cannot be reached ({type(error).__name__})")


def _asked(client: httpx2.AsyncClient, spec: ServerSpec) -> AbstractAsyncContextManager[httpx2.Response]:
    """The head of the answer; an event stream has no end."""
    if spec.is_sse:
        return client.stream("GET", spec.url or "", headers={"accept": "text/event-stream"} | spec.headers)
    first = introduction(spec.url or "")
    return client.stream("POST", first.url, content=first.content, headers=dict(first.headers) | spec.headers)


async def _obstacle(
    client: httpx2.AsyncClient, spec: ServerSpec, oauth: OAuthSettings, challenge: httpx2.Response
) -> str:
    said = challenge.headers.get("www-authenticate", "")
    scheme = said.partition(" ")[0].rstrip(",")
    if scheme and "bearer" not in said.lower():
        return f"it asks for a sign-in by {printable(scheme)[:40]}, which Pegboard does not have"
    metadata = await _metadata(client, spec, challenge)
    if metadata is None:
        return "it does not say where to sign in"
    if PKCE not in (metadata.code_challenge_methods_supported or []):
        return f"its authorization server does not support PKCE ({PKCE})"
    documents = metadata.client_id_metadata_document_supported and oauth.client_metadata_url
    if oauth.client_id is None and metadata.registration_endpoint is None and not documents:
        return (
            "its authorization server registers no clients by itself: have one registered, and add an entry with its "
            "oauth.client_id to pegboard.toml"
        )
    return ""


async def _metadata(client: httpx2.AsyncClient, spec: ServerSpec, challenge: httpx2.Response) -> OAuthMetadata | None:
    """Of the authorization server that the server names, or of its own origin (MCP 2025-03-26)."""
    url, issuer = spec.url or "", None
    named = extract_resource_metadata_from_www_auth(challenge)
    for place in build_protected_resource_metadata_discovery_urls(named, url):
        resource = await handle_protected_resource_response(await client.get(place))
        if resource is not None:
            issuer = str(resource.authorization_servers[0])
            break
    for place in build_oauth_authorization_server_metadata_discovery_urls(issuer, url):
        _, metadata = await handle_auth_metadata_response(await client.get(place))
        if metadata is not None:
            return metadata
    return None
