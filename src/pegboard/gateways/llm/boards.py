"""A board for each array of tools that requests bring along, kept while the same array keeps coming."""

from __future__ import annotations

import asyncio
import ctypes
import hashlib
import logging
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pegboard.board import Board
from pegboard.catalog import BpeCounter, Catalog
from pegboard.errors import PegboardError
from pegboard.gateways.llm.codec import Codec, Offered
from pegboard.gateways.llm.reading import object_of, read, readable, understanding
from pegboard.model import Choices, Decision, Server, ServerName, Tokens, Tool, ToolId, Turn
from pegboard.routing import Profile
from pegboard.seams import Filter, TokenCounter

LOGGER = logging.getLogger(__name__)

BoardOf = Callable[[Catalog, Profile], Board]
"""Makes the board of a catalog under a profile: the composition root knows with which encoder, events and clock."""

MOST_BYTES = 6 * 1024 * 1024
"""Bytes of definitions whose boards are kept: what is made of them, parsed and as vectors, is many times as large."""


class StillEmbedding(PegboardError):  # noqa: N818
    """These tools were not seen before, and whoever asked did not want to wait until they are embedded."""

    code = "still_embedding"
    http_status = 503


Asked = tuple[str, Filter | None]
"""A query, and among which tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Places of tools, best first: the relevant ones, and the next best."""

    relevant: tuple[int, ...]
    likely: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """A board of offered tools, the id of each that can be ranked by its place, and what each weighs as it is sent.

    ``digest`` is a hash of their definitions, the same in every process.
    """

    board: Board
    ids: Mapping[int, ToolId]
    places: Mapping[ToolId, int]
    tokens: tuple[Tokens, ...]
    digest: bytes
    recent: OrderedDict[Asked, tuple[float, Decision]] = field(default_factory=OrderedDict)
    """What was decided lately, and when (seconds of the clock)."""
    picks: OrderedDict[Asked, Pick] = field(default_factory=OrderedDict)
    """What earlier requests picked."""
    told: dict[Hashable, object] = field(default_factory=dict)
    """What models are told of its tools in place of their definitions, once it was made."""

    def pick(self, choices: Choices) -> Pick:
        """These choices by the tools' places."""
        chosen, ranked = dict.fromkeys(choices.active), dict.fromkeys(choices.ranked)
        relevant = [tool for tool in ranked if tool in chosen] + [tool for tool in chosen if tool not in ranked]
        return Pick(
            relevant=tuple(self.places[tool] for tool in relevant),
            likely=tuple(self.places[tool] for tool in ranked if tool not in chosen),
        )


Key = tuple[str, Profile, tuple[bytes, ...], frozenset[int]]
"""Every byte of every definition, as a tool of the same name with another text is another tool (P17); and the places of
those that stay."""


class Boards:
    """The boards of the arrays that were used last. Tools that were never seen before are embedded first, once."""

    def __init__(self, board_of: BoardOf, *, counter: TokenCounter | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._board_of = board_of
        self._counter = counter or BpeCounter()
        self._most_bytes = most_bytes
        self._held = 0
        self._stocks: OrderedDict[Key, Stock] = OrderedDict()
        self._underway: dict[Key, asyncio.Task[Stock]] = {}

    async def of(
        self, codec: Codec, tools: Sequence[Offered], profile: Profile, patience: float | None = None
    ) -> Stock:
        """Built off the event loop, once, whoever else asks meanwhile (P25). Raises CatalogError for broken tools, and
        StillEmbedding after ``patience`` seconds: it goes on without the one who asked."""
        fixed = frozenset(place for place, tool in enumerate(tools) if tool.stays)
        key = (codec.name, profile, tuple(tool.definition for tool in tools), fixed)
        if key in self._stocks:
            self._stocks.move_to_end(key)
            return self._stocks[key]
        if key not in self._underway:
            task = asyncio.create_task(self._made(codec, tuple(tools), profile))
            self._underway[key] = task
            task.add_done_callback(lambda done: self._keep(key, done))
        try:
            return await asyncio.wait_for(asyncio.shield(self._underway[key]), patience)
        except TimeoutError:
            raise StillEmbedding("Its tools are still being embedded.", remedy="The next requests have them.") from None

    async def _made(self, codec: Codec, tools: Sequence[Offered], profile: Profile) -> Stock:
        """Tools nobody has seen before are embedded here: whoever cannot wait leaves, and finds it done later."""
        stock = await asyncio.to_thread(self._stocked, codec, tools, profile)
        await stock.board.warm()
        await asyncio.to_thread(give_back)
        return stock

    def _stocked(self, codec: Codec, tools: Sequence[Offered], profile: Profile) -> Stock:
        ids, catalog = catalog_of(codec, tools, self._counter)
        board = self._board_of(catalog, profile)
        board.pool(Turn(messages=()))  # counted here, rather than on the event loop with the first turn
        weights = self._counter.count([tool.definition.decode("utf-8", "replace") for tool in tools])
        return Stock(
            board=board,
            ids=ids,
            places={tool: place for place, tool in ids.items()},
            tokens=tuple(map(Tokens, weights)),
            digest=hashlib.sha256(b"\0".join(tool.definition for tool in tools)).digest(),
        )

    def _keep(self, key: Key, done: asyncio.Task[Stock]) -> None:
        del self._underway[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._stocks[key] = done.result()
        self._held += _size(key)
        while self._held > self._most_bytes and len(self._stocks) > 1:
            self._held -= _size(self._stocks.popitem(last=False)[0])

    def __len__(self) -> int:
        return len(self._stocks)

    async def close(self) -> None:
        """Stop what is going on in the background."""
        tasks = list(self._underway.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def catalog_of(codec: Codec, tools: Sequence[Offered], counter: TokenCounter) -> tuple[dict[int, ToolId], Catalog]:
    """The tools that can be ranked, by place and as a catalog.

    Requests name no servers. The same name again is a tool of another server, named with one blank more: ids differ,
    and no word is added to what is matched (P17).
    """
    ids: dict[int, ToolId] = {}
    servers: dict[str, list[Tool]] = {}
    seen: Counter[str] = Counter()
    for place, offered in enumerate(tools):
        with understanding():
            tool = None if offered.stays else codec.tool(object_of(read(readable(offered.definition))))
        if tool is not None:
            ids[place] = ToolId(" " * seen[tool.name], tool.name)
            seen[tool.name] += 1
            servers.setdefault(ids[place].server, []).append(replace(tool, id=ids[place]))
    groups = ((Server(name=ServerName(name)), of_server) for name, of_server in servers.items())
    return ids, Catalog.build(groups, counter=counter)


def give_back() -> None:
    """Hand memory that was freed back to the system: of what embedding took, glibc would keep tens of megabytes."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def _size(key: Key) -> int:
    return sum(map(len, key[2]))
