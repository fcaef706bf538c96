"""A board for each array of tools that requests bring along, kept while the same array keeps coming."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from pegboard import operating_system
from pegboard.catalog import BpeCounter, Catalog
from pegboard.errors import PegboardError
from pegboard.gateways.llm.formats.json_reader import object_of, read, understanding
from pegboard.gateways.llm.formats.protocol import Codec, OfferedTool
from pegboard.lone_surrogates import readable
from pegboard.model import Choices, Decision, Server, ServerName, Tokens, Tool, ToolId, Turn
from pegboard.protocols import Filter, TokenCounter
from pegboard.retrieval.index_thread import MANY, on_index_thread
from pegboard.retrieval.no_match import shipped
from pegboard.retrieval.search_index import SearchIndex
from pegboard.routing import Profile
from pegboard.routing_board import RoutingBoard

LOGGER = logging.getLogger(__name__)

BoardOf = Callable[[Catalog, Profile], RoutingBoard]
"""Builds the board of a catalog under a profile: the composition root supplies encoder, events and clock."""

BY_WORDS = frozenset({"hybrid"})
"""Rankers that can rank by words until the tools are embedded."""
MOST_BYTES = 6 * 1024 * 1024
"""Bytes of definitions whose boards are kept: a board, parsed and with vectors, takes several times as much."""
BOARD_BYTES = 16 * 1024
"""What a board takes besides, as bytes of definitions: there may be many small ones."""
MOST_SHOWN = 32_768
"""Queries whose relevant tools are kept for `call_tool/disclosure.py`, of all boards together: some 10 MB."""
MOST_TOLD = 32
"""Texts that a board keeps at most."""


class StillEmbedding(PegboardError):  # noqa: N818
    """These tools are new, and the caller did not want to wait until they are embedded."""

    code = "still_embedding"
    http_status = 503


Asked = tuple[str, Filter | None]
"""A query and the tools among which it selects."""
DecidedFor = tuple[str, Asked]
"""Whose habits count, and what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """Places of tools, best first: the relevant ones, and the next best. ``any_fits``: the request seems to be for some
    of them, not for the agent's own tools alone."""

    relevant: tuple[int, ...]
    likely: tuple[int, ...]
    any_fits: bool = True

    def widened(self, more: int) -> Pick:
        """The pick with so many of the next best moved to the relevant ones."""
        return replace(self, relevant=(*self.relevant, *self.likely[:more]), likely=self.likely[more:])

    def shown(self, most: int) -> tuple[int, ...]:
        """What is shown to an agent with tools of its own: at ``most`` so many, and none that nobody asked for."""
        return self.relevant[:most] if self.any_fits else ()


class ShownPicks:
    """The picks of one board for many queries, as hashes and without the next best tools: what a conversation is shown
    depends on all its messages. Boards may share a ``store``, which forgets what was not needed for the longest."""

    def __init__(self, store: OrderedDict[bytes, Pick] | None = None) -> None:
        self._store: OrderedDict[bytes, Pick] = OrderedDict() if store is None else store
        self._board = uuid4().bytes

    def known(self, queries: Iterable[str], among: Filter | None) -> dict[str, Pick]:
        """The picks that are kept of these queries."""
        key_of, found = self._keys(among), dict[str, Pick]()
        for query in queries:
            key = key_of(query)
            if key in self._store:
                self._store.move_to_end(key)
                found[query] = self._store[key]
        return found

    def keep(self, picks: Mapping[str, Pick], among: Filter | None) -> None:
        """Keep these picks by query."""
        key_of = self._keys(among)
        for query, pick in picks.items():
            key = key_of(query)
            self._store[key] = replace(pick, likely=())
            self._store.move_to_end(key)
        while len(self._store) > MOST_SHOWN:
            self._store.popitem(last=False)

    def _keys(self, among: Filter | None) -> Callable[[str], bytes]:
        begun = hashlib.blake2b(self._board, digest_size=16)
        if among is not None:
            begun.update(repr([None if each is None else sorted(each) for each in _sets(among)]).encode())

        def key_of(query: str) -> bytes:
            key = begun.copy()
            key.update(b"\0" + query.encode("utf-8", "surrogatepass"))
            return key.digest()

        return key_of


def _sets(among: Filter) -> tuple[Collection[Any] | None, ...]:
    return among.servers, among.excluded, among.only


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBoard:
    """A board of offered tools, the ids of those that can be ranked by place, and the tokens of each as sent.

    ``digest`` is a hash of the definitions, the same in every process.
    """

    routing: RoutingBoard
    ids: Mapping[int, ToolId]
    places: Mapping[ToolId, int]
    tokens: tuple[Tokens, ...]
    digest: bytes
    is_embedded: bool = True
    """Whether the tools are embedded; until then they are ranked by words."""
    recent: OrderedDict[DecidedFor, tuple[float, Decision]] = field(default_factory=OrderedDict)
    """Recent decisions, with the time (seconds of the clock)."""
    picks: OrderedDict[Asked, Pick] = field(default_factory=OrderedDict)
    """The picks of earlier requests."""
    shown: ShownPicks = field(default_factory=ShownPicks)
    """The picks of the messages of conversations."""
    told: OrderedDict[Hashable, object] = field(default_factory=OrderedDict)
    """Texts shown to models in place of definitions, those that were made last."""
    search: SearchIndex | None = None
    """Tells whether a request is for any of these tools, where the agent has others of its own."""

    def pick(self, choices: Choices) -> Pick:
        """These choices as places."""
        chosen, ranked = dict.fromkeys(choices.active), dict.fromkeys(choices.ranked)
        relevant = [tool for tool in ranked if tool in chosen] + [tool for tool in chosen if tool not in ranked]
        return Pick(
            relevant=tuple(self.places[tool] for tool in relevant),
            likely=tuple(self.places[tool] for tool in ranked if tool not in chosen),
            any_fits=self._any_fits(choices),
        )

    def tell(self, key: Hashable, text: object) -> None:
        """Keep a text, and drop the oldest ones: callers choose the tools that are never used, and so the keys."""
        self.told[key] = text
        while len(self.told) > MOST_TOLD:
            self.told.popitem(last=False)

    def _any_fits(self, choices: Choices) -> bool:
        """Whether the request seems to be for any of the tools; true where that cannot be told."""
        scored = [each for each in choices.candidates if each.parts]
        if self.search is None or not scored:
            return True
        return self.search.chance(choices.query, scored, comparable=choices.comparable) >= shipped().least


Key = tuple[str, Profile, tuple[bytes, ...], frozenset[int]]
"""All bytes of all definitions, as another text makes another tool (P17), and the places of the tools that stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardBuild:
    """A board that is being built: the start (seconds of the event loop), and the board by words, available before its
    tools are embedded, and ``soon`` if there are few."""

    since: float
    made: asyncio.Task[ToolBoard]
    by_words: asyncio.Future[ToolBoard]
    soon: bool


class BoardCache:
    """The boards of the most recently used arrays. New tools are embedded once."""

    def __init__(self, board_of: BoardOf, *, counter: TokenCounter | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._board_of = board_of
        self._counter = counter or BpeCounter()
        self._most_bytes = most_bytes
        self._held = 0
        self._shown: OrderedDict[bytes, Pick] = OrderedDict()
        self._boards: OrderedDict[Key, ToolBoard] = OrderedDict()
        self._underway: dict[Key, BoardBuild] = {}

    async def of(
        self, codec: Codec, tools: Sequence[OfferedTool], profile: Profile, patience: float | None = None
    ) -> ToolBoard:
        """The board of these tools, built once off the event loop however many requests wait for it (P25). After
        ``patience`` seconds since the build began the result ranks by words, if the profile can; the build continues.

        Words need no encoder: up to `MANY` tools are read within moments even on a busy machine, so that is waited for.
        Raises CatalogError for invalid tools, and StillEmbedding if there is no board by words either.
        """
        fixed = frozenset(place for place, tool in enumerate(tools) if tool.stays)
        key = (codec.name, profile, tuple(tool.identity for tool in tools), fixed)
        if key in self._boards:
            self._boards.move_to_end(key)
            return self._boards[key]
        if key not in self._underway:
            early: asyncio.Future[ToolBoard] = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._made(early, codec, tuple(tools), profile))
            self._underway[key] = BoardBuild(
                since=asyncio.get_running_loop().time(),
                made=task,
                by_words=early,
                soon=profile.ranker in BY_WORDS and len(tools) <= MANY,
            )
            task.add_done_callback(lambda done: self._keep(key, done))
        return await self._awaited(self._underway[key], patience)

    async def _awaited(self, underway: BoardBuild, patience: float | None) -> ToolBoard:
        if patience is None:
            return await asyncio.shield(underway.made)
        left = underway.since + patience - asyncio.get_running_loop().time()
        wait = max(left, 0.0) if underway.by_words.done() else patience
        try:
            return await asyncio.wait_for(asyncio.shield(underway.made), wait)
        except TimeoutError:
            if underway.soon:
                await asyncio.wait({underway.made, underway.by_words}, return_when=asyncio.FIRST_COMPLETED)
            if underway.by_words.done():
                return underway.by_words.result()
            if underway.made.done():
                return underway.made.result()
            raise StillEmbedding(
                "The request's tools are still being embedded.", remedy="Try again in a moment."
            ) from None

    async def _made(
        self, early: asyncio.Future[ToolBoard], codec: Codec, tools: Sequence[OfferedTool], profile: Profile
    ) -> ToolBoard:
        """New tools are embedded here; requests that cannot wait use words or give up."""
        board = await on_index_thread(len(tools), lambda: self._built(codec, tools, profile))
        if profile.ranker in BY_WORDS:
            by_words = replace(board, is_embedded=False, recent=OrderedDict(), picks=OrderedDict(), shown=ShownPicks())
            early.set_result(by_words)
        await board.routing.warm()
        await asyncio.to_thread(operating_system.give_back_memory)
        return board

    def _built(self, codec: Codec, tools: Sequence[OfferedTool], profile: Profile) -> ToolBoard:
        ids, catalog = catalog_of(codec, tools, self._counter)
        routing = self._board_of(catalog, profile)
        routing.pool(Turn(messages=()))  # counts tokens here rather than on the event loop
        weights = self._counter.count([tool.definition.decode("utf-8", "replace") for tool in tools])
        among_own = profile.ranker in BY_WORDS and any(tool.protected for tool in tools)
        return ToolBoard(
            routing=routing,
            ids=ids,
            places={tool: place for place, tool in ids.items()},
            tokens=tuple(map(Tokens, weights)),
            digest=hashlib.sha256(b"\0".join(tool.identity for tool in tools)).digest(),
            search=SearchIndex(catalog.tools, catalog.servers) if among_own else None,
            shown=ShownPicks(self._shown),
        )

    def _keep(self, key: Key, done: asyncio.Task[ToolBoard]) -> None:
        del self._underway[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._boards[key] = done.result()
        self._held += _size(key)
        while self._held > self._most_bytes and len(self._boards) > 1:
            self._held -= _size(self._boards.popitem(last=False)[0])

    def __len__(self) -> int:
        return len(self._boards)

    async def close(self) -> None:
        """Cancel the builds that are running."""
        tasks = [each.made for each in self._underway.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def catalog_of(codec: Codec, tools: Sequence[OfferedTool], counter: TokenCounter) -> tuple[dict[int, ToolId], Catalog]:
    """The tools that can be ranked, by place and as a catalog.

    Requests name no servers. A repeated name becomes a tool of another server, whose name is one more blank: the ids
    differ, and no word is added to the matched text (P17).
    """
    ids: dict[int, ToolId] = {}
    servers: dict[str, list[Tool]] = {}
    seen: Counter[str] = Counter()
    for place, offered in enumerate(tools):
        with understanding():
            tool = None if offered.stays else codec.tool(object_of(read(readable(offered.definition))))
        if tool is not None:
            name = offered.name if offered.namespace else tool.name
            ids[place] = ToolId(" " * seen[name], name)
            seen[name] += 1
            servers.setdefault(ids[place].server, []).append(replace(tool, id=ids[place]))
    groups = ((Server(name=ServerName(name)), of_server) for name, of_server in servers.items())
    return ids, Catalog.build(groups, counter=counter)


def _size(key: Key) -> int:
    return BOARD_BYTES + sum(map(len, key[2]))


def __getattr__(name: str) -> Any:
    if name == "Boards":
        warnings.warn("`Boards` is now `BoardCache`.", DeprecationWarning, stacklevel=2)
        return BoardCache
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
