"""An authorization server for tests: its metadata, keys and introspection on a real socket, tokens as it would sign
them."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from processes import until

ALGORITHMS: Mapping[str, Any] = {
    "RS256": RSAAlgorithm,
    "PS256": RSAAlgorithm,
    "ES256": ECAlgorithm,
    "EdDSA": OKPAlgorithm,
}


def new_key(algorithm: str) -> Any:
    if algorithm == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else rsa.generate_private_key(65537, 2048)


@dataclass
class RunningIssuer:
    """``keys`` are private keys by id, ``opaque`` what introspection says of a token; ``asked`` counts requests,
    ``shown`` is what those who asked about tokens showed."""

    url: str
    resource: str = "http://127.0.0.1:7332/mcp"
    keys: dict[str, tuple[str, Any]] = field(default_factory=dict)
    opaque: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    shown: list[str] = field(default_factory=list)
    delay: float = 0.0
    metadata: dict[str, Any] = field(default_factory=dict)

    def add(self, kid: str, algorithm: str = "ES256") -> None:
        self.keys[kid] = algorithm, new_key(algorithm)

    def token(
        self, kid: str = "one", *, key: Any = None, algorithm: str = "", header: Any = None, **claims: Any
    ) -> str:
        """A valid access token for ten minutes, with these claims in place of the usual ones; None leaves one out."""
        own_algorithm, own_key = self.keys.get(kid, ("ES256", None))
        now = int(time.time())
        usual = {"iss": self.url, "aud": self.resource, "sub": "ann", "iat": now, "exp": now + 600}
        said = {name: value for name, value in (usual | claims).items() if value is not None}
        head = {"kid": kid, "typ": "at+jwt"} | (header or {})
        return jwt.encode(said, key or own_key, algorithm or own_algorithm, headers=head)

    def jwks(self) -> dict[str, Any]:
        found = []
        for kid, (algorithm, key) in self.keys.items():
            said = json.loads(ALGORITHMS[algorithm].to_jwk(key.public_key()))
            found.append(said | {"kid": kid, "use": "sig", "alg": algorithm})
        return {"keys": found}


@asynccontextmanager
async def running_issuer(path: str = "") -> AsyncIterator[RunningIssuer]:
    listening = socket.create_server(("127.0.0.1", 0))
    issuer = RunningIssuer(f"http://127.0.0.1:{listening.getsockname()[1]}{path}")
    issuer.add("one")

    async def metadata(_request: Request) -> JSONResponse:
        issuer.asked["metadata"] += 1
        return JSONResponse({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/jwks"} | issuer.metadata)

    async def jwks(_request: Request) -> JSONResponse:
        issuer.asked["jwks"] += 1
        await asyncio.sleep(issuer.delay)
        return JSONResponse(issuer.jwks())

    async def introspect(request: Request) -> JSONResponse:
        issuer.asked["introspect"] += 1
        if request.headers.get("authorization") is None:
            return JSONResponse({}, 401)
        form = await request.form()
        issuer.shown.append(f"{request.headers['authorization']} {form['token']}")
        return JSONResponse(issuer.opaque.get(str(form["token"]), {"active": False}))

    routes = [
        Route(f"/.well-known/oauth-authorization-server{path}", metadata),
        Route(f"{path}/jwks", jwks),
        Route(f"{path}/introspect", introspect, methods=["POST"]),
    ]
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), lifespan="off", log_config=None))
    serving = asyncio.create_task(server._serve([listening]))
    await until(lambda: server.started)
    try:
        yield issuer
    finally:
        server.should_exit = True
        await serving
        listening.close()
