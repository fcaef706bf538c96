"""An authorization server and an MCP server that checks the token of every call, in one process. Argument: the
port. The variable `KEY` is the private key of both, as PEM."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import jwt
import mcp_types as types
import uvicorn
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from jwt.algorithms import ECAlgorithm
from mcp.server.lowlevel import Server
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

ALGORITHM = "ES256"
GATEWAY = "http://127.0.0.1:7332/mcp"
"""The resource that users' own tokens are for."""


def token(key: Any, here: str, user: str, audience: str) -> str:
    now = int(time.time())
    claims = {"iss": here, "aud": audience, "sub": user, "iat": now, "exp": now + 3600}
    return jwt.encode(claims, key, ALGORITHM, headers={"kid": "one", "typ": "at+jwt"})


class Tokens:
    """ASGI middleware: 401 for a request without a token for this server."""

    def __init__(self, app: Any, key: Any, here: str) -> None:
        self._app = app
        self._key = key.public_key()
        self._here = here

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/mcp":
            shown = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
            try:
                claims = jwt.decode(shown, self._key, [ALGORITHM], audience=f"{self._here}/mcp", issuer=self._here)
            except jwt.InvalidTokenError:
                await Response("", 401, {"www-authenticate": "Bearer"})(scope, receive, send)
                return
            scope = {**scope, "subject": claims["sub"]}
        await self._app(scope, receive, send)


def main(port: str) -> None:
    key: Any = load_pem_private_key(os.environ["KEY"].encode(), None)
    here = f"http://127.0.0.1:{port}"

    async def metadata(_request: Request) -> JSONResponse:
        return JSONResponse({"issuer": here, "jwks_uri": f"{here}/jwks", "token_endpoint": f"{here}/token"})

    async def jwks(_request: Request) -> JSONResponse:
        public = json.loads(ECAlgorithm.to_jwk(key.public_key()))
        return JSONResponse({"keys": [public | {"kid": "one", "use": "sig", "alg": ALGORITHM}]})

    async def exchange(request: Request) -> JSONResponse:
        form = await request.form()
        own = jwt.decode(str(form["subject_token"]), key.public_key(), [ALGORITHM], audience=GATEWAY, issuer=here)
        made = token(key, here, own["sub"], str(form["resource"]))
        return JSONResponse({"access_token": made, "token_type": "Bearer", "expires_in": 3600})

    async def list_tools(_ctx: Any, _params: object) -> types.ListToolsResult:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        tools = [
            types.Tool(name=name, description=f"{name.capitalize()} something of the caller.", input_schema=schema)
            for name in ("whose", "read", "write", "find", "move", "share", "archive", "delete")
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, _params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=ctx.request.scope.get("subject", "nobody"))])

    server: Server[Any] = Server("bench", on_list_tools=list_tools, on_call_tool=call_tool)
    app: Any = server.streamable_http_app(
        custom_starlette_routes=[
            Route("/.well-known/oauth-authorization-server", metadata),
            Route("/jwks", jwks),
            Route("/token", exchange, methods=["POST"]),
        ]
    )
    uvicorn.run(Tokens(app, key, here), host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
