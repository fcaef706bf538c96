"""A server of FastMCP behind its own OAuth, which agrees at once; for FastMCP's own environment. Argument: the port."""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions


def main(port: str) -> None:
    auth = InMemoryOAuthProvider(
        base_url=f"http://127.0.0.1:{port}",
        client_registration_options=ClientRegistrationOptions(enabled=True),
        revocation_options=RevocationOptions(enabled=True),
    )
    server = FastMCP("signed", auth=auth)

    @server.tool
    def whose() -> str:
        """Tell whose token this is."""
        token = get_access_token()
        return "nobody" if token is None else token.client_id

    server.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="error")


if __name__ == "__main__":
    main(*sys.argv[1:])
