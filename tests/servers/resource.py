"""An MCP server whose tokens another authorization server issues, which it asks about each. Arguments: the port, and
options as JSON: ``issuer``, ``scopes`` that every request needs, ``metadata`` in place of its own of RFC 9728,
``personal``: what it lists and answers is its caller's alone.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

import httpx2
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from personal import personal_server
from signed import server_of
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
    if replaced is not None:
        app.router.routes.insert(0, Route("/.well-known/oauth-protected-resource/mcp", metadata))
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
