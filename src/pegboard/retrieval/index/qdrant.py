"""A collection of Qdrant: one byte a dimension in memory, rescored by whole vectors.

Qdrant's own client is used, synchronous and on threads, so that an index belongs to no event loop. The same client has
an engine in process (`QdrantClient(":memory:")`), which compares all vectors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from uuid import UUID, uuid5

from pegboard.errors import StoreError
from pegboard.extras import required
from pegboard.model import Floats, ToolId
from pegboard.protocols import Filter, Hits
from pegboard.retrieval.index.stored_rows import batches, best, digest, is_settled, key_of

EXTRA = "qdrant"
NAMESPACE = UUID("6a1d4f0e-6c0b-5b43-9a86-2f6f0f3f6f5b")
"""Of the points' ids, which are made from the tools'."""
BATCH = 300
"""Vectors per request."""
PAGE = 2_000
"""Ids per request."""
FILLING = 15.0
"""Factor on the timeout for requests that fill the collection."""
LOOKED_AT = 200
"""Candidates of the graph (`hnsw_ef`)."""
OVERSAMPLED = 2.0
"""Candidates by bytes for each result, of which whole vectors choose."""


class QdrantIndex:
    """Vectors in one collection, which is created with the first of them.

    A request without an answer within ``timeout`` seconds raises StoreError. Each runs within ``guard``, which may be a
    circuit breaker. A filter is part of the request, so that what it excludes takes no place.
    """

    def __init__(
        self,
        client: Any,
        collection: str,
        *,
        place: str = "",
        timeout: float = 2.0,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._models = required("qdrant_client.models", EXTRA)
        failures = required("qdrant_client.http.exceptions", EXTRA)
        self._refused: Any = failures.UnexpectedResponse
        self._lost: Any = failures.ApiException
        self._client = client
        self._name = collection
        self._url = place
        self._timeout = timeout
        self._guard = guard
        self._is_there = False

    async def add(self, ids: Sequence[ToolId], vectors: Floats) -> None:
        """Add vectors, except those already stored, which their stored digests tell."""
        latest = {tool: vectors[place] for place, tool in enumerate(ids)}
        if latest:
            await self._make(vectors.shape[1])
        for some in batches(list(latest), BATCH):
            known = await self._digests(some)
            points = [
                self._models.PointStruct(
                    id=_point(tool),
                    vector=latest[tool].tolist(),
                    payload={"server": tool.server, "name": tool.name, "digest": made},
                )
                for tool in some
                if known.get(_point(tool)) != (made := digest(latest[tool]))
            ]
            if points:
                await self._ask("upsert", self._timeout * FILLING, points=points, wait=True)

    async def remove(self, ids: Sequence[ToolId]) -> None:
        if ids and await self._exists():
            await self._ask("delete", self._timeout * FILLING, points_selector=[*map(_point, ids)], wait=True)

    async def ids(self) -> frozenset[ToolId]:
        there: set[ToolId] = set()
        offset: Any = None
        while await self._exists():
            wanted = {"with_payload": ["server", "name"], "with_vectors": False}
            points, offset = await self._ask("scroll", self._timeout * FILLING, limit=PAGE, offset=offset, **wanted)
            there |= {_tool(point) for point in points}
            if offset is None:
                break
        return frozenset(there)

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        """Asks for more until ties at the last place are told apart, or all have been seen."""
        if k < 1 or not len(queries) or not await self._exists():
            return [[] for _ in queries]
        chosen = self._models.SearchParams(
            hnsw_ef=LOOKED_AT,
            exact=where is not None and where.only is not None,
            quantization=self._models.QuantizationSearchParams(rescore=True, oversampling=OVERSAMPLED),
        )
        wanted = k + 1
        while True:
            requests = [
                self._models.QueryRequest(
                    query=query.tolist(),
                    limit=wanted,
                    filter=self._condition(where),
                    params=chosen,
                    with_payload=["server", "name"],
                )
                for query in queries
            ]
            answers = await self._ask("query_batch_points", requests=requests)
            hits = [[(_tool(point), float(point.score)) for point in answer.points] for answer in answers]
            if all(len(row) < wanted or is_settled(row, row, k) for row in hits):
                return [best(row, k) for row in hits]
            wanted *= 2

    def _condition(self, where: Filter | None) -> Any:
        """A filter in Qdrant's terms."""
        if where is None:
            return None
        models = self._models
        must = []
        if where.servers is not None:
            among = models.MatchAny(any=sorted(where.servers))
            must.append(models.FieldCondition(key="server", match=among))
        if where.only is not None:
            must.append(models.HasIdCondition(has_id=[*map(_point, where.only)]))
        excluded = [models.HasIdCondition(has_id=[*map(_point, where.excluded)])] if where.excluded else []
        return models.Filter(must=must, must_not=excluded)

    async def _digests(self, tools: Sequence[ToolId]) -> dict[str, str]:
        """Of the points that are there."""
        wanted = {"with_payload": ["digest"], "with_vectors": False}
        found = await self._ask("retrieve", self._timeout * FILLING, ids=[*map(_point, tools)], **wanted)
        return {str(point.id): str(point.payload["digest"]) for point in found}

    async def _exists(self) -> bool:
        self._is_there = self._is_there or bool(await self._ask("collection_exists"))
        return self._is_there

    async def _make(self, dimensions: int) -> None:
        """Create the collection, if another process has not."""
        if await self._exists():
            return
        models = self._models
        small = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
        try:
            await self._ask(
                "create_collection",
                self._timeout * FILLING,
                vectors_config=models.VectorParams(size=dimensions, distance=models.Distance.DOT, on_disk=True),
                quantization_config=models.ScalarQuantization(scalar=small),
            )
        except StoreError:
            if not await self._exists():  # else another process was first
                raise
        await self._ask("create_payload_index", field_name="server", field_schema=models.PayloadSchemaType.KEYWORD)
        self._is_there = True

    async def _ask(self, what: str, timeout: float | None = None, **said: Any) -> Any:
        """The client's answer. Raises StoreError; it quotes nothing of the server but a status."""
        limit = timeout or self._timeout
        with self._guard():
            try:
                async with asyncio.timeout(limit):
                    return await asyncio.to_thread(getattr(self._client, what), self._name, **said)
            except self._refused as error:
                why = f"status {error.status_code}"
            except TimeoutError:
                why = f"no answer within {limit:g} s"
            except (self._lost, OSError, ValueError) as error:  # ValueError: the engine in process
                why = type(getattr(error, "source", error)).__name__
            self._is_there = False
            raise StoreError(
                f"Qdrant at {self._url} cannot be used: {why}.",
                remedy="Check that it runs and that [qdrant] names its address.",
            )


def _point(tool: ToolId) -> str:
    """Ids of points are numbers or UUIDs."""
    return str(uuid5(NAMESPACE, key_of(tool)))


def _tool(point: Any) -> ToolId:
    return ToolId(point.payload["server"], point.payload["name"])
