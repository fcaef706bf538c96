"""Signing in on another device (RFC 8628): a person enters a code there, and Pegboard asks until it was done."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls
from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata
from pydantic import AnyHttpUrl, BaseModel, ValidationError

from pegboard.upstreams.oauth.browser_grant import chosen_server
from pegboard.upstreams.oauth.held_tokens import HeldTokens
from pegboard.upstreams.oauth.person import Person

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL = 5.0
SLOWER = 5.0
"""Seconds between two questions, and what `slow_down` adds (RFC 8628, 3.5)."""


class DeviceCode(BaseModel):
    """The answer of the device authorization endpoint (RFC 8628, 3.2)."""

    device_code: str
    user_code: str
    verification_uri: AnyHttpUrl
    verification_uri_complete: AnyHttpUrl | None = None
    expires_in: float = 600.0
    interval: float = INTERVAL


class DeviceMetadata(OAuthMetadata):
    device_authorization_endpoint: AnyHttpUrl | None = None


class DeviceLogin(OAuthClientProvider):
    """The SDK's flow with a device code in place of a redirect."""

    def __init__(
        self,
        url: str,
        metadata: OAuthClientMetadata,
        held: HeldTokens,
        client: httpx2.AsyncClient,
        person: Person,
        issuer: str | None,
    ) -> None:
        super().__init__(url, metadata, held)
        self._client = client
        self._person = person
        self._seconds = person.seconds
        self._issuer = issuer
        self._interval = INTERVAL

    def _select_authorization_server(self, advertised: list[str]) -> str:
        return chosen_server(advertised, self._issuer)

    def polling(self, transport: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
        """A transport that repeats the request for tokens until the person is done."""
        return _Polling(transport, self)

    @property
    def interval(self) -> float:
        return self._interval

    @property
    def seconds(self) -> float:
        return self._seconds

    async def _perform_authorization(self) -> httpx2.Request:
        """Raises OAuthFlowError."""
        context = self.context
        if context.client_info is None:
            raise OAuthFlowError("there is no client to sign in with")
        data = {"client_id": context.client_info.client_id}
        if context.client_metadata.scope:
            data["scope"] = context.client_metadata.scope
        if context.should_include_resource_param(context.protocol_version):
            data["resource"] = context.get_resource_url()
        data, headers = context.prepare_token_auth(data, {})
        response = await self._client.post(await self._endpoint(), data=data, headers=headers)
        if not response.is_success:
            raise OAuthFlowError(f"the authorization server gives no device code (status {response.status_code})")
        code = DeviceCode.model_validate_json(response.content)
        self._interval = max(code.interval, 1.0)
        self._seconds = min(self._seconds, code.expires_in)
        await self._person.show_code(str(code.verification_uri_complete or code.verification_uri), code.user_code)
        asked: dict[str, Any] = {
            "grant_type": DEVICE_GRANT,
            "device_code": code.device_code,
            "client_id": context.client_info.client_id,
        }
        asked, headers = context.prepare_token_auth(asked, {"content-type": "application/x-www-form-urlencoded"})
        return httpx2.Request("POST", self._get_token_endpoint(), data=asked, headers=headers)

    async def _endpoint(self) -> str:
        """The device authorization endpoint, which the SDK's metadata do not keep: they are read once more."""
        metadata = self.context.oauth_metadata
        issuer = str(metadata.issuer) if metadata is not None else None
        for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, self.context.server_url):
            response = await self._client.get(url)
            with suppress(ValidationError):
                found = DeviceMetadata.model_validate_json(response.content)
                if response.is_success and str(found.issuer) == issuer and found.device_authorization_endpoint:
                    return str(found.device_authorization_endpoint)
        raise OAuthFlowError("the authorization server has no device flow; sign in with a browser")


class _Polling(httpx2.AsyncBaseTransport):
    def __init__(self, inner: httpx2.AsyncBaseTransport, login: DeviceLogin) -> None:
        self._inner = inner
        self._login = login

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if DEVICE_GRANT.replace(":", "%3A").encode() not in await request.aread():
            return await self._inner.handle_async_request(request)
        loop = asyncio.get_running_loop()
        pause, end = self._login.interval, loop.time() + self._login.seconds
        while True:
            await asyncio.sleep(pause)
            response = await self._inner.handle_async_request(request)
            reason = "" if response.status_code < httpx2.codes.BAD_REQUEST else _reason(await _read(response))
            if reason not in ("authorization_pending", "slow_down") or loop.time() >= end:
                return response
            pause += SLOWER if reason == "slow_down" else 0.0

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _read(response: httpx2.Response) -> bytes:
    return await response.aread()


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body).get("error", ""))
    except (ValueError, AttributeError):
        return ""
