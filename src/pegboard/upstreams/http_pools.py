"""The TCP connections to servers without sessions, which all users share."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

import httpx2
from mcp.client.session import ClientSession, _make_modern_stamp
from pydantic import BaseModel

Stamp = Callable[[dict[str, Any], Any], None]
Said = TypeVar("Said", bound=BaseModel | None)


class HttpPools:
    """Pools of connections: one to servers, and one for each proxy.

    A request takes any idle connection to its address, whoever sends it: what tells users apart (tokens, cookies,
    headers) is in each one's own client and in no connection.
    """

    def __init__(self) -> None:
        self.names = count(1)
        """Ids of requests, none of them given twice: an answer that was left on a connection by an earlier request, of
        another user, fits none."""
        self._open: dict[tuple[str, bytes], httpx2.AsyncBaseTransport] = {}

        self._said: WeakValueDictionary[tuple[type[BaseModel], str], BaseModel] = WeakValueDictionary()
        self._stamps: dict[str, Stamp] = {}

    def introduction(self, said: Said) -> Said:
        """The same, in memory once for all to whom a server says the same of itself. It is not to be changed."""
        if said is None:
            return said
        return cast(Said, self._said.setdefault((type(said), said.model_dump_json(by_alias=True)), said))

    def stamp(self, session: ClientSession) -> Stamp:
        """What adds to each request what the SDK's client says of itself: the same for all users. Headers of arguments
        are not among it (`send_client_capabilities`)."""
        version = session.protocol_version or ""
        parts = session._client_info, session._build_capabilities(version)
        info, abilities = (part.model_dump(by_alias=True, mode="json", exclude_none=True) for part in parts)
        key = json.dumps([version, info, abilities])
        if key not in self._stamps:
            self._stamps[key] = _make_modern_stamp(version, info, abilities, lambda name, arguments: {})
        return self._stamps[key]

    def lent(self, proxy: httpx2.Proxy | None, make: Callable[[], httpx2.AsyncBaseTransport]) -> LentTransport:
        """The pool of the proxy, for a client that may close: the pool stays open."""
        key = ("", b"") if proxy is None else (str(proxy.url), b":".join(proxy.raw_auth or ()))
        if key not in self._open:
            self._open.setdefault(key, make())
        return LentTransport(self._open[key])

    async def aclose(self) -> None:
        while self._open:
            await self._open.popitem()[1].aclose()


class LentTransport(httpx2.AsyncBaseTransport):
    """A pool in the hands of one client."""

    def __init__(self, pool: httpx2.AsyncBaseTransport) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._pool.handle_async_request(request)
