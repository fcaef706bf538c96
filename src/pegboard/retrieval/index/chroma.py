"""A collection on a Chroma server, over its HTTP API (v2).

Chroma's own client is not used: it has no timeout, it shares one connection pool with its headers among all servers of
a process, so that one server gets the other's token, and it depends on gRPC and OpenTelemetry.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import httpx2
import numpy as np

from pegboard.errors import StoreError
from pegboard.model import Floats, ToolId
from pegboard.protocols import Filter, Hits
from pegboard.retrieval.index.stored_rows import batches, best, digest, is_settled, key_of, tool_of

BATCH = 300
"""Vectors per request; the server stores them in well under a second."""
PAGE = 2_000
"""Ids per request."""
MOST_NAMED = 500
"""Maximum servers or tools named in a request; longer filters are applied here."""
FILLING = 15.0
"""Factor on the timeout for requests that fill the collection, because the server builds its graph meanwhile."""
GRAPH = {"space": "ip", "ef_construction": 100, "ef_search": 200, "max_neighbors": 16}
"""Inner products, exact for the results; enough candidates that hardly any near vector is missed."""

T = TypeVar("T")


class ChromaIndex:
    """Vectors in one collection, which is created if missing.

    A request without an answer within ``timeout`` seconds raises StoreError. Each request has its own connection. Each
    runs within ``guard``, which may be a circuit breaker.
    """

    def __init__(
        self,
        url: str,
        collection: str,
        *,
        tenant: str = "default_tenant",
        database: str = "default_database",
        headers: Mapping[str, str] | None = None,
        timeout: float = 2.0,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._place = f"{url.rstrip('/')}/api/v2/tenants/{tenant}/databases/{database}/collections"
        self._url = url
        self._name = collection
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._guard = guard
        self._client: httpx2.AsyncClient | None = None
        self._id: str | None = None

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        """Add vectors, except those already stored, which their stored hashes tell."""
        latest = {tool: vectors[place] for place, tool in enumerate(ids)}
        hashes = {tool: digest(vector) for tool, vector in latest.items()}
        for some in batches(list(latest), BATCH):
            found = await self._ask(
                "get", {"ids": [*map(key_of, some)], "include": ["metadatas"]}, self._timeout * FILLING
            )
            known = {tool_of(key): row["hash"] for key, row in zip(found["ids"], found["metadatas"], strict=True)}
            if new := [tool for tool in some if known.get(tool) != hashes[tool]]:
                rows = {
                    "ids": [key_of(tool) for tool in new],
                    "embeddings": [_written(latest[tool]) for tool in new],
                    "metadatas": [{"server": tool.server, "hash": hashes[tool]} for tool in new],
                }
                await self._ask("upsert", rows, self._timeout * FILLING)

    async def remove(self, ids: Sequence[ToolId]) -> None:
        for some in batches(list(ids), BATCH):
            await self._ask("delete", {"ids": [*map(key_of, some)]}, self._timeout * FILLING)

    async def ids(self) -> frozenset[ToolId]:
        there: set[ToolId] = set()
        while True:
            page = await self._ask("get", {"limit": PAGE, "offset": len(there), "include": []}, self._timeout * FILLING)
            there |= {tool_of(key) for key in page["ids"]}
            if len(page["ids"]) < PAGE:
                return frozenset(there)

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        """Requests as many more results as tools are excluded, then twice as many each time, until k pass the filter or
        all have been seen."""
        body = _restricted(where)
        if k < 1 or not len(queries) or body is None:
            return [[] for _ in queries]
        if where is not None and where.only is not None and len(where.only) <= MOST_NAMED:
            return await self._compared(queries, k, [tool for tool in where.only if where.passes(tool)])
        excluded = len(where.excluded) if where is not None else 0
        wanted = k + 1 + min(excluded, MOST_NAMED)
        while True:
            found = await self._ask("query", body | {"query_embeddings": queries.tolist(), "n_results": wanted})
            hits = [
                [(tool_of(key), 1.0 - distance) for key, distance in zip(*row, strict=True)]
                for row in zip(found["ids"], found["distances"], strict=True)
            ]
            passing = [[hit for hit in row if where is None or where.passes(hit[0])] for row in hits]
            if all(len(seen) < wanted or is_settled(row, seen, k) for row, seen in zip(passing, hits, strict=True)):
                return [best(row, k) for row in passing]
            wanted *= 2

    async def _compared(self, queries: Floats, k: int, tools: Sequence[ToolId]) -> list[Hits]:
        """Fetch the vectors of these tools and compare them here: the server would search its whole graph for them."""
        nothing: list[Hits] = [[] for _ in queries]
        if not tools:
            return nothing
        found = await self._ask("get", {"ids": [*map(key_of, tools)], "include": ["embeddings"]})
        there = [tool_of(key) for key in found["ids"]]
        if not there:
            return nothing
        products = await _aside(lambda: queries @ np.array(found["embeddings"], np.float32).T)
        return [best(list(zip(there, row, strict=True)), k) for row in products.tolist()]

    async def _ask(self, what: str, body: Mapping[str, Any], timeout: float | None = None) -> Any:
        """The collection's answer. Raises StoreError."""
        with self._guard():
            return await self._posted(f"{self._place}/{await self._collection()}/{what}", body, timeout)

    async def _collection(self) -> str:
        if self._id is None:
            body = {"name": self._name, "get_or_create": True, "configuration": {"hnsw": GRAPH}}
            self._id = str((await self._posted(self._place, body))["id"])
        return self._id

    async def _posted(self, url: str, body: Mapping[str, Any], timeout: float | None = None) -> Any:
        """Error messages quote nothing of the library or the server but a number, since they may contain what was
        sent."""
        limit = timeout or self._timeout
        try:
            async with asyncio.timeout(limit):
                content = await _aside(lambda: json.dumps(body).encode())
                response = await self._opened().post(url, content=content, timeout=limit)
                if response.is_success:
                    return await _aside(response.json)
        except (TimeoutError, httpx2.TimeoutException):
            raise self._unusable(f"no answer within {limit:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            raise self._unusable(type(error).__name__) from None
        self._id = None  # it may be another or an emptied server by now
        raise self._unusable(f"status {response.status_code}")

    def _opened(self) -> httpx2.AsyncClient:
        """Created once, because that reads certificates. It keeps no connections, so any event loop can use it."""
        if self._client is None:
            limits = httpx2.Limits(max_keepalive_connections=0)
            headers = {"Content-Type": "application/json"} | self._headers
            self._client = httpx2.AsyncClient(headers=headers, limits=limits, trust_env=False)
        return self._client

    def _unusable(self, why: str) -> StoreError:
        return StoreError(
            f"Chroma at {self._url} cannot be used: {why}.",
            remedy="Check that it runs and that [chroma] names its address.",
        )


def _restricted(where: Filter | None) -> dict[str, Any] | None:
    """A filter in Chroma's terms, if those are short; None if nothing can pass it.

    Excluded tools are not named (`$nin`): requesting as many more results is faster.
    """
    body: dict[str, Any] = {"include": ["distances"]}
    if where is None:
        return body
    if where.servers == frozenset() or where.only == frozenset():
        return None
    if where.servers is not None and len(where.servers) <= MOST_NAMED:
        body["where"] = {"server": {"$in": sorted(where.servers)}}
    return body


def _written(vector: Floats) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


async def _aside(work: Callable[[], T]) -> T:
    """Run off the event loop: converting megabytes of numbers takes a while."""
    return await asyncio.to_thread(work)
