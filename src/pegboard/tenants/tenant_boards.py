"""Boards of many tenants: what they share, what is each one's own, and how nobody is slowed down by another."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegboard.board_search import found_tools
from pegboard.catalog import Catalog
from pegboard.catalog.ingest import tools_of_any_format
from pegboard.compose import Parts, as_configured, default_parts, summaries
from pegboard.errors import CatalogError, ConfigError, QuotaReached
from pegboard.fair_queue import FairQueue
from pegboard.library.matches import ToolMatches, checked_limit, matches_of
from pegboard.library.turns import Said, turn_of
from pegboard.model import Decision, Floats, Server, ServerName, Tool, ToolId, Turn
from pegboard.protocols import Embeddings, Encoder
from pegboard.retrieval import CachedEncoder, Progress, Retriever
from pegboard.retrieval.tool_texts import server_profile
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings, load_settings
from pegboard.tenants.background_encoder import BackgroundEncoder, Described, described
from pegboard.tenants.definition_store import PUBLIC, DefinitionStore, ServerRows
from pegboard.tenants.hot_boards import HotBoards, View

BATCH = 16
"""Tools of an import that are embedded at a time: then the next tenant's import has its turn."""
HOT_TOOLS = 24_000
MOST_TOOLS = 100_000
AT_ONCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How many tools a server lists now, and how many of them were embedded for that."""

    tools: int
    embedded: int


class _Turns:
    """Which listing of a server was asked for last: an earlier one that ends after it changes nothing."""

    def __init__(self) -> None:
        self._asked = 0
        self._applied: dict[str, int] = {}

    def ask(self) -> int:
        """The number of a listing that begins now."""
        self._asked += 1
        return self._asked

    def apply(self, server: str, number: int) -> bool:
        """Whether a listing may take effect: none that was asked for after it has."""
        if number < self._applied.get(server, 0):
            return False
        self._applied[server] = number
        return True


@dataclass(slots=True)
class _Tenant:
    shared: tuple[str, ...] = ()
    own: dict[str, ServerRows] = field(default_factory=dict)
    arriving: int = 0
    turns: _Turns = field(default_factory=_Turns)


class TenantBoards:
    """One board a tenant, over one store. Every method is for one event loop.

    ``hot_tools`` bounds the tools of the boards that are ready to search; the others are built from the store when they
    are asked. ``most_tools`` is how many tools of its own a tenant may have, ``at_once`` how many requests are at work
    at once, one fewer of one tenant; tenants that wait take turns. ``encoder`` replaces that of the settings; ``parts``
    are other parts of a board (`pegboard.compose.Parts`).

    >>> from pegboard.testing import FakeEncoder
    >>> async def example() -> list[str]:
    ...     boards = TenantBoards(encoder=FakeEncoder())
    ...     await boards.publish("sea", [{"name": "tide", "description": "When the tide comes"}])
    ...     await boards.import_tools("acme", "crm", [{"name": "find_invoice", "description": "Find an invoice"}])
    ...     boards.use("acme", ["sea"])
    ...     boards.use("other", ["sea"])
    ...     return [str(tool) for name in ("acme", "other") for tool in (await boards.search(name, "invoice")).ids]
    >>> asyncio.run(example())
    ['crm/find_invoice', 'sea/tide']
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        hot_tools: int = HOT_TOOLS,
        most_tools: int = MOST_TOOLS,
        at_once: int = AT_ONCE,
        encoder: Encoder | None = None,
        **parts: Any,
    ) -> None:
        self._settings = settings or load_settings()
        self._replaced = parts if encoder is None else {"encoder": encoder, **parts}
        self._hot_tools = hot_tools
        self._most_tools = most_tools
        self._store = DefinitionStore()
        self._public: dict[str, ServerRows] = {}
        self._public_turns = _Turns()
        self._tenants: dict[str, _Tenant] = {}
        self._requests, self._imports = FairQueue(at_once), FairQueue(1)
        self._parts: Parts | None = None
        self._boards: HotBoards | None = None
        self._background: BackgroundEncoder | None = None
        self._opening = asyncio.Lock()

    @property
    def definitions(self) -> int:
        """Distinct definitions of all tenants."""
        return len(self._store)

    @property
    def hot(self) -> int:
        """Boards that are ready to search."""
        return 0 if self._boards is None else len(self._boards)

    async def publish(
        self, server: Server | str, tools: Sequence[object], *, progress: Progress | None = None
    ) -> Imported:
        """List a server that every tenant may `use`, or list it anew. Its tools are embedded once for all.

        Tools are `Tool` objects, or definitions in the form of MCP, OpenAI, Anthropic or Gemini. What is listed changes
        when all are there. Raises CatalogError for tools that cannot be read, EncoderError if they cannot be embedded.
        """
        turn = self._public_turns.ask()
        listed, made = await self._listed(PUBLIC, *_read(server, tools), progress)
        if not self._public_turns.apply(listed.server.name, turn):
            self._release(listed)
            return Imported(tools=len(self._public.get(listed.server.name, ())), embedded=made)
        before = self._public.get(listed.server.name)
        self._public[listed.server.name] = listed
        self._release(before)
        return Imported(tools=len(listed), embedded=made)

    def withdraw(self, server: str) -> None:
        """List a public server no more: no tenant has it from the next request on."""
        self._public_turns.apply(server, self._public_turns.ask())
        self._release(self._public.pop(server, None))

    def use(self, tenant: str, servers: Collection[str]) -> None:
        """The public servers that a tenant has from the next request on, in this order, in place of those before.

        Raises ConfigError for a name that is not public, or that a server of the tenant's own has.
        """
        own = self._tenants[tenant].own if tenant in self._tenants else {}
        for name in servers:
            if name not in self._public:
                raise ConfigError(f"No public server is called {name!r}.", remedy="Publish it first.")
            if name in own:
                raise _taken(tenant, name)
        self._tenants.setdefault(tenant, _Tenant()).shared = tuple(dict.fromkeys(servers))

    async def import_tools(
        self, tenant: str, server: Server | str, tools: Sequence[object], *, progress: Progress | None = None
    ) -> Imported:
        """List a server of a tenant's own, or list it anew: nobody else sees it, and nothing of it is shared.

        Tools are embedded few at a time at a low priority, tenants taking turns. Raises QuotaReached for more
        tools than a tenant may have, and what `publish` raises.
        """
        if not tenant:
            raise ConfigError("A tenant needs a name.", remedy="Publish what is for everybody.")
        described, read = _read(server, tools)
        mine = self._tenants.setdefault(tenant, _Tenant())
        if described.name in mine.shared:
            raise _taken(tenant, described.name)
        if self._own_tools(mine, described.name) + mine.arriving + len(read) > self._most_tools:
            raise QuotaReached(tenant, "tools of its own", self._most_tools)
        mine.arriving += len(read)
        turn = mine.turns.ask()
        try:
            listed, made = await self._listed(tenant, described, read, progress)
        finally:
            mine.arriving -= len(read)
        if self._tenants.get(tenant) is not mine:  # it was removed meanwhile
            self._release(listed)
            return Imported(tools=0, embedded=made)
        if described.name in mine.shared:  # it was taken meanwhile
            self._release(listed)
            raise _taken(tenant, described.name)
        if not mine.turns.apply(described.name, turn):
            self._release(listed)
            return Imported(tools=len(mine.own.get(described.name, ())), embedded=made)
        before = mine.own.get(described.name)
        mine.own[described.name] = listed
        self._release(before)
        return Imported(tools=len(listed), embedded=made)

    def remove_tools(self, tenant: str, server: str) -> None:
        """List a server of a tenant's own no more."""
        mine = self._of(tenant)
        mine.turns.apply(server, mine.turns.ask())
        self._release(mine.own.pop(server, None))

    def remove_tenant(self, tenant: str) -> None:
        """Remove a tenant with everything of its own."""
        for listed in self._of(tenant).own.values():
            self._release(listed)
        del self._tenants[tenant]
        if self._boards is not None:
            self._boards.forget(tenant)

    async def route(self, tenant: str, said: Said, **fields: Any) -> Decision:
        """The tools of a tenant's turn, as `pegboard.Board.route` has them; ``fields`` are fields of the turn.

        Raises QuotaReached for a tenant that waits for too many requests already.
        """
        board = await self.board(tenant)
        await board.index_words()
        async with self._requests.place(tenant):
            return await board.route(replace(turn_of(said), **fields))

    async def search(self, tenant: str, query: str, *, limit: int = 10, **fields: Any) -> ToolMatches:
        """The tools of a tenant that match a query, as `pegboard.Board.search` has them."""
        most = checked_limit(limit)
        board = await self.board(tenant)

        def ask(text: str) -> Turn:
            return replace(Turn.ask(text), **fields)

        await board.index_words()
        index = await board.search_index()
        async with self._requests.place(tenant):
            found = await found_tools(board, index, ask, query)
            return matches_of(found, board.catalog, most)

    async def board(self, tenant: str) -> RoutingBoard:
        """The board of a tenant, as it is now. Raises ConfigError for a tenant that is unknown."""
        mine = self._of(tenant)
        boards = await self._opened()
        board = await boards.of(tenant, self._view(tenant))
        if self._tenants.get(tenant) is not mine:  # it was removed while its board was built
            boards.forget(tenant)
        return board

    def tools_of(self, tenant: str) -> frozenset[ToolId]:
        """The ids of all tools of a tenant."""
        return frozenset(tool.id for listed in self._view(tenant) for tool in self._store.tools(listed))

    async def close(self) -> None:
        """End the process of imports and close what the settings opened."""
        if self._background is not None:
            await self._background.close()
        if self._parts is not None:
            await self._parts.close()
        self._parts = self._boards = self._background = None

    def _of(self, tenant: str) -> _Tenant:
        try:
            return self._tenants[tenant]
        except KeyError:
            raise ConfigError(
                f"No tenant is called {tenant!r}.", remedy="Give it servers first: `use` or `import_tools`."
            ) from None

    def _view(self, tenant: str) -> View:
        mine = self._of(tenant)
        shared = (self._public[name] for name in mine.shared if name in self._public)
        return (*shared, *mine.own.values())

    def _own_tools(self, mine: _Tenant, but: str) -> int:
        return sum(len(listed) for name, listed in mine.own.items() if name != but)

    def _release(self, listed: ServerRows | None) -> None:
        if listed is not None:
            self._store.release(listed.rows)

    async def _opened(self) -> HotBoards:
        async with self._opening:
            if self._boards is None:
                self._parts = await asyncio.to_thread(default_parts, self._settings, **self._replaced)
                self._boards = HotBoards(self._settings, self._parts, self._store, self._hot_tools)
                if self._settings.encoder.provider == "local" and "encoder" not in self._replaced:
                    self._background = BackgroundEncoder()
        return self._boards

    def _documents(self, owner: str) -> CachedEncoder:
        """What embeds for an owner. Its vectors are kept in the store of embeddings where nobody else finds them."""
        assert self._parts is not None  # noqa: S101 - opened before
        kept = self._parts.embeddings
        return CachedEncoder(self._background or self._parts.encoder, OwnEmbeddings(kept, owner) if owner else kept)

    async def _listed(
        self, owner: str, server: Server, tools: Sequence[Tool], progress: Progress | None
    ) -> tuple[ServerRows, int]:
        await self._opened()
        encoder = self._documents(owner)
        rows: list[NDArray[np.int32]] = []
        made = 0
        try:
            for start in range(0, len(tools), BATCH):
                some = tools[start : start + BATCH]
                async with self._imports.place(owner):
                    kept, new = await self._kept(owner, some, encoder)
                rows.append(kept)
                made += new
                if progress is not None:
                    progress(start + len(some), len(tools))
            profile = np.array((await encoder.encode([server_profile(server)]))[0], np.float32)
        except BaseException:
            for kept in rows:
                self._store.release(kept)
            raise
        together = np.concatenate(rows) if rows else np.zeros(0, np.int32)
        return ServerRows(server=server, owner=owner, rows=together, profile=profile), made

    async def _kept(self, owner: str, tools: Sequence[Tool], encoder: CachedEncoder) -> tuple[NDArray[np.int32], int]:
        """Rows of some tools, and how many of them had to be embedded."""
        keys = self._store.keys(owner, tools)
        known = [key for key in keys if self._store.has(key)]
        new = {key: tool for key, tool in zip(keys, tools, strict=True) if not self._store.has(key)}
        held = self._store.hold(known)  # they stay while the others are embedded
        try:
            ready, tokens = await self._described(list(new.values()))
            vectors = await Retriever(ready, {}, documents=encoder, queries=encoder).vectors()
            made = self._store.keep(list(new), ready, vectors, tokens)
        except BaseException:
            self._store.release(held)
            raise
        row = dict(zip([*known, *new], [*held.tolist(), *made.tolist()], strict=True))
        return np.array([row[key] for key in keys], np.int32), len(new)

    async def _described(self, tools: Sequence[Tool]) -> Described:
        """With summaries, and what the settings say of them; and the tokens of each."""
        if not tools:
            return (), ()
        ready, tokens = described(tools) if self._background is None else await self._background.described(tools)
        server = Server(name=ServerName(tools[0].server))
        catalog = Catalog.build([(server, ready)])
        return as_configured(summaries(self._settings).put_on(catalog), self._settings).tools, tokens


class OwnEmbeddings:
    """A part of a store of embeddings that only an owner finds: its keys are hashed with the owner's name."""

    def __init__(self, store: Embeddings, owner: str) -> None:
        self._store = store
        self._owner = owner

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        own = {self._own(key): key for key in keys}
        return {own[key]: vector for key, vector in (await self._store.get(list(own))).items()}

    async def put(self, vectors: Mapping[str, Floats]) -> None:
        await self._store.put({self._own(key): vector for key, vector in vectors.items()})

    def _own(self, key: str) -> str:
        return hashlib.sha256(f"{key}{self._owner}".encode("utf-8", "surrogatepass")).hexdigest()


def _read(server: Server | str, tools: Sequence[object]) -> tuple[Server, list[Tool]]:
    described = Server(name=ServerName(server)) if isinstance(server, str) else server
    known = [each for each in tools if isinstance(each, Tool)]
    read = known if len(known) == len(tools) else tools_of_any_format(described.name, tools)
    if wrong := [tool for tool in read if tool.server != described.name]:
        raise CatalogError(
            f"Tool {str(wrong[0].id)!r} is listed under server {described.name!r}.",
            remedy="A tool's id names the server that lists it.",
        )
    if repeated := [str(tool) for tool, times in Counter(tool.id for tool in read).items() if times > 1]:
        raise CatalogError(f"Duplicate tools: {', '.join(repeated)}.", remedy="A server lists each tool name once.")
    return described, read


def _taken(tenant: str, server: str) -> ConfigError:
    return ConfigError(
        f"The tenant {tenant!r} already has a server called {server!r}.", remedy="Give one of them another name."
    )
