"""The requests whose 401 begins a sign-in: those with which an MCP client begins."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import httpx2
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls, handle_protected_resource_response
from mcp_types.version import LATEST_PROTOCOL_VERSION

from pegboard.upstreams.oauth.challenges import UNAUTHORIZED
from pegboard.upstreams.oauth.client_records import CLIENT_NAME
from pegboard.upstreams.oauth.held_tokens import HeldTokens

SESSION_HEADER = "mcp-session-id"


def introduction(url: str) -> httpx2.Request:
    """What a client of the handshake era says first; servers of all eras refuse it without a token."""
    params: dict[str, Any] = {
        "protocolVersion": LATEST_PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": {"name": CLIENT_NAME.lower(), "version": "1"},
    }
    return _request(url, {"method": "initialize", "params": params})


async def begin(client: httpx2.AsyncClient, url: str, held: HeldTokens) -> httpx2.Response:
    """The last answer. ``client`` signs in when a request is refused, after which ``held`` has tokens.

    Some servers are open for the introduction and want a token for what follows; some only for calls of tools, which
    are not made here. Those are recognized by their protected-resource metadata (RFC 9728).
    """
    response = await client.send(introduction(url))
    session = response.headers.get(SESSION_HEADER, "")
    if held.tokens is None:
        request = _request(url, {"method": "tools/list"}, session)
        response = await client.send(request)
        response = await _unasked(client, request, held) or response
    if session:  # nobody will use it
        with suppress(httpx2.HTTPError):
            await client.send(httpx2.Request("DELETE", url, headers={SESSION_HEADER: session}), auth=None)
    return response


async def _is_protected(client: httpx2.AsyncClient, url: str) -> bool:
    """Whether the server names an authorization server."""
    for place in build_protected_resource_metadata_discovery_urls(None, url):
        if await handle_protected_resource_response(await client.get(place, auth=None)) is not None:
            return True
    return False


async def _unasked(client: httpx2.AsyncClient, request: httpx2.Request, held: HeldTokens) -> httpx2.Response | None:
    """Have ``client`` sign in as after a 401 to this request, if the server is protected. The answer to the request
    with the token; None if there was nothing to do."""
    if held.tokens is not None or client.auth is None or not await _is_protected(client, str(request.url)):
        return None
    flow = client.auth.async_auth_flow(request)
    response = httpx2.Response(UNAUTHORIZED, request=await anext(flow))
    with suppress(StopAsyncIteration):
        while True:
            response = await client.send(await flow.asend(response), auth=None)
    return response


def _request(url: str, body: dict[str, Any], session: str = "") -> httpx2.Request:
    headers = {
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": LATEST_PROTOCOL_VERSION,
    }
    headers |= {SESSION_HEADER: session} if session else {}
    return httpx2.Request("POST", url, content=json.dumps({"jsonrpc": "2.0", "id": 1} | body), headers=headers)
