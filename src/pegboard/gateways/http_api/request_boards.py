"""Boards of the tools that requests of the HTTP API bring along, kept while the same tools keep coming."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pegboard.cached_property import cached_property
from pegboard.catalog import Catalog, compact_json
from pegboard.catalog.ingest import tools_of_any_format
from pegboard.compose import Parts, build_routing
from pegboard.errors import CatalogError, PegboardError
from pegboard.model import JsonObject, Server, ServerName, ToolId
from pegboard.protocols import VectorIndex
from pegboard.retrieval.index_thread import on_index_thread
from pegboard.retrieval.search_index import SearchIndex
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings

LOGGER = logging.getLogger(__name__)

OWN = "local"
"""The server of tools that a request brings along."""
MOST_BOARDS = 64
MOST_BYTES = 32 * 1024 * 1024
"""Boards that are kept, and bytes of their definitions; the last one used is kept whatever its size."""


@dataclass(frozen=True)
class RequestBoard:
    """A board of a request's tools. ``size`` is in bytes of their definitions."""

    routing: RoutingBoard
    size: int
    warming: asyncio.Task[None]

    @cached_property
    def names(self) -> Mapping[ToolId, str]:
        """The name of each tool, one mapping for all requests with these tools."""
        return MappingProxyType({tool.id: tool.name for tool in self.routing.catalog.tools})

    async def search_index(self) -> SearchIndex:
        """What searches need of these tools, built with the first."""
        if "index" not in self.__dict__:
            await on_index_thread(len(self.routing.catalog), lambda: self.index)
        return self.index

    @cached_property
    def index(self) -> SearchIndex:
        catalog = self.routing.catalog
        return SearchIndex(catalog.tools, catalog.servers)


class RequestBoards:
    """The boards of the last used tools. Requests with equal tools share one; its answers depend on nothing else.

    ``close`` ends what is being embedded.
    """

    def __init__(self, settings: Callable[[], Settings], parts: Parts) -> None:
        self._settings = settings
        self._made_with = settings()
        self._parts = replace(parts, index=_in_memory, fallback_index=_in_memory)
        self._boards: OrderedDict[bytes, asyncio.Task[RequestBoard]] = OrderedDict()

    async def of(self, tools: Sequence[JsonObject]) -> RequestBoard:
        """The board of these tools; until they are embedded, after `api.patience` seconds, it ranks by words.

        Raises CatalogError for tools that cannot be read, and for too many.
        """
        settings = self._settings()
        if settings is not self._made_with:
            self._made_with = settings
            self._boards.clear()
        most = settings.api.most_tools
        if len(tools) > most:
            said = f"The request has {len(tools):,} tools, and at most {most:,} are allowed."
            raise CatalogError(said, remedy="Send fewer, or raise api.most_tools.")
        key = await asyncio.to_thread(_key, tools)
        making = self._boards.get(key)
        if making is None:
            making = self._boards[key] = asyncio.create_task(self._made(tools))
        self._boards.move_to_end(key)
        try:
            board = await asyncio.shield(making)
        except Exception:  # the next request tries again
            self._boards.pop(key, None)
            raise
        self._shrink()
        await asyncio.wait([board.warming], timeout=settings.api.patience)
        return board

    async def close(self) -> None:
        making = [each for each in self._boards.values() if each.done() and not each.exception()]
        running = [each.result().warming for each in making] + [*self._boards.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._boards.clear()

    async def _made(self, tools: Sequence[JsonObject]) -> RequestBoard:
        routing, size = await on_index_thread(len(tools), lambda: self._built(tools))
        return RequestBoard(routing=routing, size=size, warming=asyncio.create_task(_warm(routing)))

    def _built(self, tools: Sequence[JsonObject]) -> tuple[RoutingBoard, int]:
        server = Server(name=ServerName(OWN))
        catalog = Catalog.build([(server, tools_of_any_format(OWN, tools))])
        routing = build_routing(self._made_with, catalog, parts=self._parts, patient=False)
        _ = routing.catalog.token_counts, routing.catalog.plain_names
        return routing, sum(len(compact_json(each)) for each in tools)

    def _shrink(self) -> None:
        """Forget the boards that were not used for the longest time."""
        done = [key for key, each in self._boards.items() if each.done() and not each.exception()]
        held = sum(self._boards[key].result().size for key in done)
        for key in done[:-1]:
            if len(self._boards) <= MOST_BOARDS and held <= MOST_BYTES:
                break
            held -= self._boards.pop(key).result().size


def _key(tools: Sequence[JsonObject]) -> bytes:
    return hashlib.sha256(compact_json(list(tools)).encode("utf-8", "surrogatepass")).digest()


async def _warm(routing: RoutingBoard) -> None:
    try:
        await routing.warm()
    except PegboardError as error:  # words rank, and the next board tries again
        LOGGER.warning("Tools of a request could not be embedded: %s", error)


def _in_memory(_board: str) -> VectorIndex | None:
    return None
