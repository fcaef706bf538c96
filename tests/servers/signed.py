"""An MCP server behind the OAuth server of the MCP SDK, both in this process. Arguments: the port, and options as JSON.

`/consent` asks a person, `/control` changes what tests need and tells what was asked. Options: ``lifetime`` of access
tokens in seconds; ``scopes`` that every request needs; with ``admin``, the tool `remove` needs the scope `admin`, too;
``open``: no sign-in; ``calls_only``: one for calls of tools alone.
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import json
import secrets
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.lowlevel import Server
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

PAGE = """<!doctype html><title>Consent</title><h1>May {client} use this server?</h1>
<form method=post><button id=allow name=answer value=allow>Allow</button>
<button id=refuse name=answer value=refuse>Refuse</button></form>"""


@dataclass
class Provider:
    """The SDK's provider, in memory."""

    here: str
    lifetime: int = 3600
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict)
    waiting: dict[str, tuple[OAuthClientInformationFull, AuthorizationParams]] = field(default_factory=dict)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    tokens: dict[str, AccessToken] = field(default_factory=dict)
    refreshes: dict[str, RefreshToken] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    seen: list[str] = field(default_factory=list)
    down: bool = False

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.asked["register"] += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked["authorize"] += 1
        number = secrets.token_hex(8)
        self.waiting[number] = client, params
        return f"{self.here}/consent/{number}"

    def answer(self, number: str, *, allowed: bool) -> str:
        client, params = self.waiting.pop(number)
        back = str(params.redirect_uri)
        if not allowed:
            return construct_redirect_uri(back, error="access_denied", state=params.state)
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject="ann",
        )
        return construct_redirect_uri(back, code=code, state=params.state)

    async def load_authorization_code(self, _client: object, code: str) -> AuthorizationCode | None:
        return self.codes.get(code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, code: AuthorizationCode
    ) -> OAuthToken:
        self.asked["code"] += 1
        del self.codes[code.code]
        return self._issued(client.client_id, code.scopes, code.resource)

    async def load_refresh_token(self, _client: object, token: str) -> RefreshToken | None:
        self.asked["refresh"] += 1
        return self.refreshes.get(token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refreshes[token.token]
        return self._issued(client.client_id, scopes or token.scopes, token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        found = self.tokens.get(token)
        return found if found is not None and (found.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.asked["revoke"] += 1
        self.tokens.pop(token.token, None)
        self.refreshes.pop(token.token, None)

    def _issued(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe(24)}", f"refresh-{secrets.token_urlsafe(24)}"
        until = int(time.time()) + self.lifetime
        self.tokens[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=until, resource=resource, subject="ann"
        )
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=self.lifetime, scope=" ".join(scopes) or None
        )


def routes(provider: Provider) -> list[Route]:
    async def consent(request: Request) -> Response:
        number = request.path_params["number"]
        if number not in provider.waiting:
            return HTMLResponse("This question is over.", 404)
        if request.method == "GET":
            return HTMLResponse(PAGE.format(client=provider.waiting[number][0].client_name))
        form = await request.form()
        return RedirectResponse(provider.answer(number, allowed=form.get("answer") == "allow"), 302)

    async def control(request: Request) -> Response:
        for what, value in (await request.json()).items():
            if what == "lifetime":
                provider.lifetime = value
            elif what == "forget_access":
                provider.tokens.clear()
            elif what == "forget_refresh":
                provider.refreshes.clear()
        known = [*provider.tokens, *provider.refreshes]
        scopes = [token.scopes for token in provider.tokens.values()]
        resources = [token.resource for token in provider.tokens.values()]
        said = {"asked": dict(provider.asked), "tokens": known, "scopes": scopes, "resources": resources}
        return JSONResponse(said | {"clients": list(provider.clients)})

    return [
        Route("/consent/{number}", consent, methods=["GET", "POST"]),
        Route("/control", control, methods=["POST"]),
    ]


def server_of(asked: Counter[str]) -> Server[Any]:
    async def list_tools(_ctx: Any, _params: object) -> types.ListToolsResult:
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in ("whose", "remove")]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        token = get_access_token()
        asked[f"call {params.name}"] += 1
        text = token.subject if token is not None else ""
        return types.CallToolResult(content=[types.TextContent(text=text or "nobody")])

    return Server("signed", on_list_tools=list_tools, on_call_tool=call_tool)


def made(here: str, provider: Provider, scopes: list[str], *, admin: bool) -> Starlette:
    auth: dict[str, Any] = {
        "issuer_url": here,
        "resource_server_url": f"{here}/mcp",
        "validate_token_resource": True,
        "required_scopes": scopes or None,
        "client_registration_options": ClientRegistrationOptions(
            enabled=True, valid_scopes=[*scopes, "admin"], default_scopes=[*scopes, "admin"]
        ),
        "revocation_options": RevocationOptions(enabled=True),
    }
    app = server_of(provider.asked).streamable_http_app(
        auth=AuthSettings(**auth),
        auth_server_provider=provider,
        token_verifier=ProviderTokenVerifier(provider),
        custom_starlette_routes=routes(provider),
    )
    if admin:
        app.add_middleware(AdminOnly, provider=provider)
    return app


class AdminOnly:
    """Answers 403 to a call of `remove` whose token does not have the scope `admin` (RFC 6750, 3.1)."""

    def __init__(self, app: Any, provider: Provider) -> None:
        self._app = app
        self._provider = provider

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != "/mcp":
            await self._app(scope, receive, send)
            return
        body, again = await read(receive)
        token = self._provider.tokens.get(bearer(scope))
        if b'"remove"' in body and token is not None and "admin" not in token.scopes:
            challenge = 'Bearer error="insufficient_scope", scope="admin"'
            await Response("", 403, {"www-authenticate": challenge})(scope, receive, send)
            return
        await self._app(scope, again, send)


class CallsOnly:
    """Lets everybody list; answers 401 to a call whose token was not issued here. Sign-ins are those of ``signing``."""

    def __init__(self, signing: Any, provider: Provider) -> None:
        self._open = server_of(provider.asked).streamable_http_app()
        self._signing = signing
        self._provider = provider

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] != "/mcp":
            await self._signing(scope, receive, send)
            return
        if scope["type"] == "http" and scope["method"] == "POST":
            body, receive = await read(receive)
            if b'"tools/call"' in body and bearer(scope) not in self._provider.tokens:
                await Response("", 401, {"www-authenticate": "Bearer"})(scope, receive, send)
                return
        await self._open(scope, receive, send)


def bearer(scope: Any) -> str:
    return str(dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer "))


async def read(receive: Any) -> tuple[bytes, Any]:
    """The body of a request, and what gives it once more."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Any:
        return next(parts, None) or await receive()

    return body, again


def main(port: str, options: str = "{}") -> None:
    chosen = json.loads(options)
    here = f"http://127.0.0.1:{port}"
    if chosen.get("open"):
        uvicorn.run(server_of(Counter()).streamable_http_app(), host="127.0.0.1", port=int(port), log_level="warning")
        return
    provider = Provider(here, lifetime=chosen.get("lifetime", 3600))
    app: Any = made(here, provider, chosen.get("scopes", []), admin=chosen.get("admin", False))
    if chosen.get("calls_only"):
        app = CallsOnly(app, provider)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
