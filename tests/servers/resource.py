"""An MCP server whose tokens another authorization server issues, which it asks about each. Arguments: the port, and
options as JSON: ``issuer``, ``scopes`` that every request needs, ``metadata`` in place of its own of RFC 9728,
``personal``: what it lists and answers is its caller's alone, ``needs``: the scope that calls of a tool need, by tool.
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import json
import sys
from collections import Counter
from typing import Any

import httpx2
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from personal import personal_server
from signed import bearer, read, server_of
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route


class Introspected:
    """Asks the authorization server (RFC 7662)."""

    def __init__(self, issuer: str) -> None:
        self._url = f"{issuer}/introspect"

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx2.AsyncClient(auth=("resource", "resource")) as client:
            said = (await client.post(self._url, data={"token": token})).json()
        if not said.get("active"):
            return None
        return AccessToken(
            token=token,
            client_id=said["client_id"],
            scopes=said["scope"].split(),
            expires_at=said["exp"],
            resource=said["aud"],
            subject=said["sub"],
        )


class Scoped:
    """Answers 403 to a call whose token lacks the scope that its tool needs (RFC 6750, 3.1)."""

    def __init__(self, app: Any, tokens: Introspected, needs: dict[str, str], asked: Counter[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._needs = needs
        self._asked = asked

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != "/mcp":
            await self._app(scope, receive, send)
            return
        body, again = await read(receive)
        call = json.loads(body)
        needed = self._needs.get(call.get("params", {}).get("name", "")) if call.get("method") == "tools/call" else None
        known = await self._tokens.verify_token(bearer(scope)) if needed else None
        if known is not None and needed not in known.scopes:
            self._asked["403"] += 1
            challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
            await Response("", 403, {"www-authenticate": challenge})(scope, receive, send)
            return
        await self._app(scope, again, send)


def main(port: str, options: str) -> None:
    chosen = json.loads(options)
    here, asked = f"http://127.0.0.1:{port}", Counter[str]()
    replaced = chosen.get("metadata")

    async def metadata(_request: Request) -> Response:
        asked["metadata"] += 1
        return RedirectResponse(replaced) if isinstance(replaced, str) else JSONResponse(replaced)

    async def control(_request: Request) -> Response:
        return JSONResponse({"asked": dict(asked)})

    auth: dict[str, Any] = {
        "issuer_url": chosen["issuer"],
        "resource_server_url": f"{here}/mcp",
        "validate_token_resource": True,
        "required_scopes": chosen.get("scopes"),
    }
    server = personal_server(asked) if chosen.get("personal") else server_of(asked)
    app = server.streamable_http_app(
        auth=AuthSettings(**auth),
        token_verifier=Introspected(chosen["issuer"]),
        custom_starlette_routes=[Route("/control", control, methods=["POST"])],
    )
    if needs := chosen.get("needs"):
        app.add_middleware(Scoped, tokens=Introspected(chosen["issuer"]), needs=needs, asked=asked)
    if replaced is not None:
        app.router.routes.insert(0, Route("/.well-known/oauth-protected-resource/mcp", metadata))
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
