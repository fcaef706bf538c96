"""What can be known of a server's sign-in before anybody signs in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.oauth.server_access import ServerAccess, server_access
from processes import listening
from signers import SIGNED

pytestmark = pytest.mark.requirement("B4")

Started = Callable[..., str]


async def access(url: str, **fields: Any) -> ServerAccess:
    return await server_access(ServerSpec(name="it", url=url, **fields))


async def test_a_server_that_registers_clients_can_be_signed_in_to(authorization: Started, resource: Started) -> None:
    for options in ({}, {"oidc": True, "path": "/a"}):
        at = authorization(**options)
        url = resource(f"{at}{options.get('path', '')}")
        assert await access(f"{url}/mcp") == ServerAccess(wants_sign_in=True)
    with listening(SIGNED) as url:
        assert await access(f"{url}/mcp") == ServerAccess(wants_sign_in=True)


async def test_a_server_for_everybody_wants_none() -> None:
    with listening(SIGNED, '{"open": true}') as url:
        assert await access(f"{url}/mcp") == ServerAccess()


async def test_a_server_that_registers_none_needs_a_configured_client(
    authorization: Started, resource: Started
) -> None:
    url = resource(authorization(metadata={"registration_endpoint": None}))
    found = await access(f"{url}/mcp")

    assert found.wants_sign_in
    assert "registers no clients by itself" in found.obstacle
    assert await access(f"{url}/mcp", oauth=OAuthSettings(client_id="ours")) == ServerAccess(wants_sign_in=True)


async def test_a_server_without_pkce_or_without_metadata_is_said_to_be_so(
    authorization: Started, resource: Started
) -> None:
    plain = resource(authorization(metadata={"code_challenge_methods_supported": None}))
    assert "does not support PKCE" in (await access(f"{plain}/mcp")).obstacle
    with answering(401) as url:
        assert "does not say where to sign in" in (await access(url)).obstacle


@contextmanager
def answering(status: int, **headers: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status if self.path == "/mcp" else 404)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    server.shutdown()
    server.server_close()


async def test_another_scheme_a_failing_server_and_one_that_is_not_there_are_obstacles() -> None:
    with answering(401, www_authenticate='Negotiate, Basic realm="x"') as url:
        assert await access(url) == ServerAccess(
            wants_sign_in=True, obstacle="it asks for a sign-in by Negotiate, which Pegboard does not have"
        )
    with answering(503) as url:
        assert (await access(url)).obstacle == "it answered with status 503"
    assert "cannot be reached" in (await access(url)).obstacle
