"""The HTTP API as an ASGI application: rights, bodies and errors of `/v1/route`, `/v1/search` and `/v1/outcome`.

origin ─► method ─► token ─► rate ─► body ─► endpoint ─► answer
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from pegboard.caller_limits import ANYONE, RateLimitReached
from pegboard.errors import PegboardError
from pegboard.gateways.http_api.api_messages import BODIES
from pegboard.gateways.http_api.endpoints import BodyInvalid, Endpoints
from pegboard.gateways.http_api.openapi_document import PATH, openapi_document
from pegboard.gateways.http_api.request_boards import RequestBoards
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport import auth
from pegboard.gateways.origins import OriginCheck
from pegboard.settings.client_configs import sentences

LOGGER = logging.getLogger(__name__)

PATHS = frozenset({*BODIES, PATH})
LARGE = 65_536
"""Bytes of a body whose reading would delay other requests noticeably."""
Work = Callable[[Any, auth.Holder | None], Awaitable[BaseModel | None]]


class BodyTooLarge(PegboardError):  # noqa: N818
    code = "body_too_large"
    http_status = 413

    def __init__(self, most: int) -> None:
        super().__init__(f"The body has more than {most:,} bytes.", remedy="Send fewer tools, or raise api.most_body.")


class MethodRefused(PegboardError):  # noqa: N818
    code = "method_not_allowed"
    http_status = 405

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"{method} is not for this path.", remedy=f"Use {allowed}.")
        self.allowed = allowed


class ApiOff(PegboardError):  # noqa: N818
    code = "api_off"
    http_status = 404

    def __init__(self) -> None:
        super().__init__("The HTTP API is turned off.", remedy="Its operator can set api.serves.")


class ApiApp:
    """Serves `PATHS`. ``origins`` says which web pages may use it; programs are no pages."""

    def __init__(self, host: Host, origins: OriginCheck, boards: RequestBoards) -> None:
        self._host = host
        self._origins = origins
        endpoints = Endpoints(host, boards)
        self._work: Mapping[str, Work] = {
            "/v1/route": endpoints.route,
            "/v1/search": endpoints.search,
            "/v1/outcome": endpoints.outcome,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive)
        except auth.Unauthorized as error:
            answer = auth.refused(error)
        except RateLimitReached as error:
            answer = _error(error, {"retry-after": str(error.retry_after)})
        except MethodRefused as error:
            answer = _error(error, {"allow": error.allowed})
        except PegboardError as error:
            answer = _error(error)
        except ClientDisconnect:
            return
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        """Raises PegboardError."""
        await self._origins.check(scope)
        settings = self._host.settings.api
        if not settings.serves:
            raise ApiOff
        path, method = scope["path"], scope["method"]
        if method != (allowed := "GET" if path == PATH else "POST"):
            raise MethodRefused(method, allowed)
        if path == PATH:
            return JSONResponse(openapi_document(version("pegboard")))
        holder = await self._host.access.holder(scope["headers"])
        await self._host.rates.admit_request(ANYONE if holder is None else holder.limited)
        body = await read_body(Request(scope, receive), settings.most_body)
        kind = BODIES[path]
        said = await asyncio.to_thread(checked, kind, body) if len(body) > LARGE else checked(kind, body)
        answer = await self._work[path](said, holder)
        if answer is None:
            return Response(status_code=204)
        return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")


@asynccontextmanager
async def open_api(host: Host, origins: OriginCheck) -> AsyncIterator[ApiApp]:
    """The application, with the boards that its requests need."""
    boards = RequestBoards(lambda: host.settings, host.parts)
    try:
        yield ApiApp(host, origins, boards)
    finally:
        await boards.close()


async def read_body(request: Request, most: int) -> bytes:
    """The body. Raises BodyTooLarge, before it is read where its length is said, and ClientDisconnect."""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said) > most:
        raise BodyTooLarge(most)
    parts: list[bytes] = []
    size = 0
    async with aclosing(request.stream()) as stream:
        async for part in stream:
            size += len(part)
            if size > most:
                raise BodyTooLarge(most)
            parts.append(part)
    return b"".join(parts)


def checked(kind: type[BaseModel], body: bytes) -> BaseModel:
    """The body as a message. Raises BodyInvalid, which says what is wrong and where, without its values."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise BodyInvalid(f"{sentences(error)}.", remedy=f"The document at {PATH} describes the body.") from error


def _error(error: PegboardError, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(error.payload(), error.http_status, headers=dict(headers or {}))
