"""How the client of the suite's authorization scenarios signs in: as the SDK does by itself, or as `pegboard login`."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

from pegboard import Settings
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import PegboardError
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.oauth.held_tokens import HeldTokens
from pegboard.upstreams.oauth.person import Person
from pegboard.upstreams.oauth.sign_ins import SignIns

CLIENT_METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The document that the suite's authorization servers know."""
REDIRECT = "http://127.0.0.1:7330/callback"
ALONE = "client-credentials"


def scenario() -> str:
    return os.environ.get("MCP_CONFORMANCE_SCENARIO", "")


def context() -> dict[str, Any]:
    return dict(json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}"))


async def browse(url: str) -> str:
    """What a browser does in which somebody agrees: it follows every redirect. Returns the last address."""
    async with httpx2.AsyncClient() as browser:
        for _ in range(5):
            response = await browser.get(url)
            if response.next_request is None:
                return url
            url = str(response.next_request.url)
            if url.startswith(REDIRECT):
                return url
    return url


async def oauth_settings(address: str) -> OAuthSettings:
    """What an operator would have configured: the client that the scenario gives, and its issuer."""
    given = context()
    own: dict[str, Any] = {"client_metadata_url": CLIENT_METADATA_URL}
    own |= {key: given[key] for key in ("client_id", "client_secret", "issuer") if key in given}
    if ALONE in scenario():
        own |= {"grant": "client_credentials", "issuer": await _issuer(address)}
    return OAuthSettings(**own)


async def _issuer(address: str) -> str:
    parts = urlsplit(address)
    async with httpx2.AsyncClient() as client:
        place = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path}"
        return str((await client.get(place)).json()["authorization_servers"][0])


async def sign_in(settings: Settings, spec: ServerSpec) -> None:
    """As `pegboard login`; what does not work out is what some scenarios want to see."""

    async def open_url(url: str) -> None:
        await browse(url)

    async def show_code(_url: str, _code: str) -> None:
        raise NotImplementedError

    if ALONE not in scenario():
        person = Person(open_url=open_url, show_code=show_code, seconds=20.0)
        with suppress(PegboardError):
            await SignIns(settings, SYSTEM_CLOCK).sign_in(spec, person)


@dataclass
class _Redirected:
    url: str = ""

    async def go(self, url: str) -> None:
        self.url = await browse(url)

    async def came(self) -> AuthorizationCodeResult:
        said = {name: values[0] for name, values in parse_qs(urlsplit(self.url).query).items()}
        return AuthorizationCodeResult(code=said.get("code", ""), state=said.get("state"), iss=said.get("iss"))


@asynccontextmanager
async def sdk_client(address: str, told: dict[str, Any]) -> AsyncIterator[Client]:
    """The SDK's client with its own OAuth."""
    async with (
        httpx2.AsyncClient(auth=await _provider(address), timeout=30) as http,
        Client(streamable_http_client(address, http_client=http), **told) as client,
    ):
        yield client


async def _provider(address: str) -> httpx2.Auth:
    given, redirected = context(), _Redirected()
    if ALONE in scenario():
        issuer = await _issuer(address)
        return ClientCredentialsOAuthProvider(
            address, HeldTokens(), given["client_id"], given["client_secret"], issuer=issuer
        )
    known = None
    if "client_id" in given:
        own = {"client_id": given["client_id"], "client_secret": given.get("client_secret")}
        known = OAuthClientInformationFull.model_validate(
            own | {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_basic"}
        )
    metadata = OAuthClientMetadata.model_validate({"client_name": "conformance", "redirect_uris": [REDIRECT]})
    return OAuthClientProvider(
        address,
        metadata,
        HeldTokens(client=known),
        redirected.go,
        redirected.came,
        client_metadata_url=CLIENT_METADATA_URL,
    )
