"""The server that a gateway was hooked into, as the gateway sees it: a listing, and calls within the same request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.dispatcher import ProgressFnT
from pydantic import BaseModel

from pegboard.catalog import Catalog, compact_json
from pegboard.catalog.ingest import tools_from_list_result
from pegboard.model import JsonObject, Server, ServerName, ToolId
from pegboard.upstreams import ServerStatus
from pegboard.upstreams.present import AskRoots

if TYPE_CHECKING:
    from collections.abc import Iterator

LIST = "tools/list"
CALL = "tools/call"
MOST_PAGES = 1000
OF_ONE_REQUEST = ("progressToken",)

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request that the server received, and the way to the rest of its middleware and its own handlers.

    What is asked of the server on behalf of this request is asked in its name: with its session, its rights and its
    ways back to the client.
    """

    ctx: Context
    proceed: CallNext

    @property
    def params(self) -> Mapping[str, Any]:
        return self.ctx.params or {}

    async def listing(self) -> Listing:
        """Every page of what this caller would be listed by the server itself. Raises MCPError as the server does."""
        meta = {key: value for key, value in (self.params.get("_meta") or {}).items() if key not in OF_ONE_REQUEST}
        own = {"_meta": meta} if meta else {}
        pages: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = own if cursor is None else own | {"cursor": cursor}
            page = as_dictionary(await self.proceed(replace(self.ctx, method=LIST, params=params)))
            pages.append(page)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        return Listing(pages=tuple(pages))

    async def call(self, name: str, arguments: JsonObject) -> dict[str, Any]:
        """The result of the server's own tool. A call that came under this very name goes on as it came."""
        if name == self.params.get("name") and arguments == (self.params.get("arguments") or {}):
            return as_dictionary(await self.proceed(self.ctx))
        params = {**self.params, "name": name, "arguments": dict(arguments)}
        return as_dictionary(await self.proceed(replace(self.ctx, params=params)))

    def answering(self) -> AbstractContextManager[None]:
        """Within it, calls of tools are part of this request."""
        return _answering(self)


_request: ContextVar[Request] = ContextVar("request")


@contextmanager
def _answering(request: Request) -> Iterator[None]:
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Pages of `tools/list`, as they would have gone to the client."""

    pages: tuple[dict[str, Any], ...]
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for page in self.pages:
            digest.update(compact_json(page.get("tools", [])).encode("utf-8", "surrogatepass"))
        object.__setattr__(self, "fingerprint", digest.hexdigest())

    def catalog(self, server: Server) -> Catalog:
        """Raises CatalogError for pages that are no listing."""
        return Catalog.build([(server, tools_from_list_result(server.name, self.pages))])

    @property
    def envelope(self) -> dict[str, Any]:
        """What a page says besides its tools: `_meta`, and how long it holds (2026-07-28)."""
        return {key: value for key, value in self.pages[0].items() if key not in ("tools", "nextCursor")}


class OneServer:
    """The servers behind a hooked gateway: just this one, always there, with the tools of one listing."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def catalog(self) -> Catalog:
        return self._catalog

    def status(self) -> Sequence[ServerStatus]:
        return [
            ServerStatus(name=name, state="ready", tools=len(self._catalog.of_server(name)))
            for name in self._catalog.servers
        ]

    async def settled(self, timeout: float, *, some: bool = False) -> bool:
        return True

    async def call(
        self,
        tool: ToolId,
        arguments: JsonObject | None,
        *,
        meta: Mapping[str, Any] | None = None,
        progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """By the server itself, in the request that is being answered: that has its `_meta` and its progress token."""
        return await _request.get().call(tool.name, arguments or {})

    def join(self, client: str, ask: AskRoots | None) -> None:
        """The server asks its client itself."""

    def leave(self, client: str) -> None:
        """Nobody joined."""

    def roots_changed(self) -> None:
        """The server hears it itself."""

    def forget(self, client: str) -> None:
        """Nothing is open for one client alone."""


def introduced(name: str, version: str | None, instructions: str | None) -> Server:
    return Server(name=ServerName(name), version=version or "", instructions=instructions or "")


def as_dictionary(result: HandlerResult) -> dict[str, Any]:
    """The result as it goes on the wire, which it is already unless a middleware of the server's own made it."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})
