"""The server that a gateway is embedded in, as the gateway sees it: a listing, and calls within the same request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.dispatcher import ProgressFnT
from pydantic import BaseModel

from pegboard.catalog import Catalog, compact_json
from pegboard.catalog.ingest import tools_from_list_result
from pegboard.model import JsonObject, Server, ServerName, ToolId
from pegboard.upstreams import ServerStatus
from pegboard.upstreams.server_requests import AskRoots

if TYPE_CHECKING:
    from collections.abc import Iterator

LIST = "tools/list"
CALL = "tools/call"
MOST_PAGES = 1000
OF_ONE_REQUEST = ("progressToken",)

Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedRequest:
    """A request that the server received, and the rest of its middleware and handlers.

    Requests to the server on behalf of this one have its session, its rights, and its connection to the client.
    """

    ctx: Context
    proceed: CallNext

    @property
    def params(self) -> Mapping[str, Any]:
        return self.ctx.params or {}

    async def listing(self) -> ToolListing:
        """All pages of the server's own listing for this caller. Raises MCPError as the server does."""
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
        return ToolListing(pages=tuple(pages))

    async def call(self, name: str, arguments: JsonObject) -> dict[str, Any]:
        """The result of the server's own tool. A call of exactly this tool and arguments passes through unchanged."""
        if name == self.params.get("name") and arguments == (self.params.get("arguments") or {}):
            return as_dictionary(await self.proceed(self.ctx))
        params = {**self.params, "name": name, "arguments": dict(arguments)}
        return as_dictionary(await self.proceed(replace(self.ctx, params=params)))

    def answering(self) -> AbstractContextManager[None]:
        """Within it, tool calls are part of this request."""
        return _answering(self)


_request: ContextVar[HookedRequest] = ContextVar("request")


@contextmanager
def _answering(request: HookedRequest) -> Iterator[None]:
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """Pages of `tools/list` as the client would have got them."""

    pages: tuple[dict[str, Any], ...]
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha256()
        for page in self.pages:
            digest.update(compact_json(page.get("tools", [])).encode("utf-8", "surrogatepass"))
        object.__setattr__(self, "fingerprint", digest.hexdigest())

    def catalog(self, server: Server) -> Catalog:
        """The listed tools. Raises CatalogError for pages that are not a listing."""
        return Catalog.build([(server, tools_from_list_result(server.name, self.pages))])

    @property
    def envelope(self) -> dict[str, Any]:
        """What a page contains besides its tools: `_meta`, and how long it may be cached (2026-07-28)."""
        return {key: value for key, value in self.pages[0].items() if key not in ("tools", "nextCursor")}


class OneServer:
    """The servers of an embedded gateway: a single one, always ready, with the tools of one listing."""

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
        """Called on the server itself, within the current request, which has its `_meta` and its progress token."""
        return await _request.get().call(tool.name, arguments or {})

    def join(self, client: str, ask: AskRoots | None) -> None:
        """Nothing to do: the server asks its client itself."""

    def leave(self, client: str) -> None:
        """Nothing to do: no client joined."""

    def roots_changed(self, client: str | None) -> None:
        """Nothing to do: the server is notified itself."""

    async def set_level(self, client: str, level: types.LoggingLevel) -> None:
        """Nothing to do: the server is told itself."""

    def forget(self, client: str) -> None:
        """Nothing to do: no connection is open for one client alone."""


def introduced(name: str, version: str | None, instructions: str | None) -> Server:
    return Server(name=ServerName(name), version=version or "", instructions=instructions or "")


def as_dictionary(result: HandlerResult) -> dict[str, Any]:
    """The result as a dictionary, which it already is unless another middleware of the server made it."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})
