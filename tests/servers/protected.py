"""An MCP server that clients have to sign in to (OAuth), as the SDK makes one. Argument: the port.

The token TOKEN opens it; whoever shows none is told where to sign in.
"""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import sys
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server

TOKEN = "a-token-that-holds"


async def list_tools(_ctx: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="secret", input_schema={"type": "object"})])


class Verifier:
    async def verify_token(self, token: str) -> AccessToken | None:
        return AccessToken(token=token, client_id="client", scopes=[]) if token == TOKEN else None


def main(port: str) -> None:
    here = f"http://127.0.0.1:{port}"
    auth: dict[str, Any] = {"issuer_url": here, "resource_server_url": f"{here}/mcp", "validate_token_resource": False}
    server: Server[Any] = Server("protected", on_list_tools=list_tools)
    app = server.streamable_http_app(auth=AuthSettings(**auth), token_verifier=Verifier())
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
