"""What is on the board now, and under which names: the snapshot that requests are answered from."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache

from pegboard.board import Board
from pegboard.catalog import Catalog, WireNames
from pegboard.catalog.names import SEPARATOR
from pegboard.compose import as_configured, rules, summaries
from pegboard.errors import ToolNotAvailable
from pegboard.gateways.mcp import exposure, meta_tools
from pegboard.gateways.mcp.servers import Servers
from pegboard.gateways.mcp.toolsets import Toolset
from pegboard.gateways.mcp.trust import Trust
from pegboard.model import Floats, Tool, ToolId, Turn
from pegboard.retrieval.categories import categories_of
from pegboard.routing import Eligibility
from pegboard.seams import Clock
from pegboard.settings import Settings

LOGGER = logging.getLogger(__name__)

SUGGESTIONS = 5
SIMILAR = 0.7
COALESCE_SECONDS = 0.05
SEARCH_SHARE = 0.4
"""Of the moment that servers have to start, what a search waits for those that are slow."""


class View:
    """A board over the tools of a fleet, kept up to date. ``changed`` is awaited when the tools are others."""

    def __init__(
        self,
        settings: Settings,
        board: Board,
        fleet: Servers,
        *,
        clock: Clock,
        toolset: Toolset | None = None,
        trust: Trust | None = None,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self.board = board
        self._settings = settings
        self._summaries = summaries(settings)
        self._fleet = fleet
        self._clock = clock
        self._toolset = toolset
        self._trust = trust
        self._held_back: tuple[ToolId, ...] = ()
        self._changed = changed
        self._wait_until = clock.monotonic() + settings.start_wait
        self._complete = False
        self._categories: Mapping[ToolId, str] | None = None
        self._stale = False
        self._unindexed = False
        self._announced: str | None = board.catalog.fingerprint
        self._unmatched: tuple[str, ...] = ()
        self._indexing: asyncio.Task[None] | None = None
        self._named(board.catalog)

    @property
    def catalog(self) -> Catalog:
        return self.board.catalog

    @property
    def is_small(self) -> bool:
        """Known to be small: once every server has been heard of, a restart does not make the board unknown again."""
        self._complete = self._complete or all(status.heard_of for status in self._fleet.status())
        return self._complete and self._small

    def renew(self) -> None:
        """The servers' tools may be others than before: the next use sees them, and they are indexed in background."""
        self._stale = True
        self._begin_indexing()

    def index(self) -> None:
        """Index in the background what was there from the beginning, unless that was done or is being done."""
        if self._indexing is None or self._indexing.cancelled():
            self._begin_indexing()

    @property
    def is_indexing(self) -> bool:
        """Whether tools are being embedded."""
        return self._indexing is not None and not self._indexing.done()

    def close(self) -> None:
        if self._indexing is not None:
            self._indexing.cancel()

    def adopt(self, settings: Settings, board: Board, toolset: Toolset | None) -> None:
        """Serve by another configuration from now on; what was embedded before is not embedded again."""
        self.board, self._settings, self._toolset = board, settings, toolset
        self._summaries = summaries(settings)
        self._named(board.catalog)
        self._announced = None
        self.renew()

    async def started(self, *, some: bool = False) -> None:
        """Servers have a moment to start, once; whoever needs longer is not waited for (M15).

        With ``some``, for a part of that moment, and after it no longer than until any of them has tools.
        """
        if some:
            await self._fleet.settled(max(0.0, self._patience - self._settings.start_wait * (1 - SEARCH_SHARE)))
        await self._fleet.settled(self._patience, some=some)
        if self._trust is not None:
            await self._trust.settled(self._patience)
        self.refresh()

    @property
    def _patience(self) -> float:
        """Seconds that are left of the moment servers have to start."""
        return max(0.0, self._wait_until - self._clock.monotonic())

    def refresh(self) -> None:
        """Take in what the servers list now."""
        if not self._stale:
            return
        listed = self._fleet.catalog()
        admitted = self._trust.admitted(listed) if self._trust else listed
        catalog = as_configured(self._summaries.put_on(admitted), self._settings)
        catalog = self._toolset.apply(catalog) if self._toolset else catalog
        held_back = tuple(tool for tool in listed.position if tool not in admitted and self._includes(tool))
        if catalog.fingerprint != self.board.catalog.fingerprint or held_back != self._held_back:
            self._held_back = held_back
            self.board.replace_catalog(catalog)
            self._named(catalog)
        self._stale = False

    @property
    def categories(self) -> Mapping[ToolId, str]:
        """The category of each tool: by names at first, and by meaning too once there are vectors."""
        if self._categories is None:
            self._categories = self._categories_of(self.catalog, None)
        return self._categories

    @property
    def category_descriptions(self) -> Mapping[str, str]:
        """What the configuration says of categories, by their names."""
        return self._settings.category_descriptions

    def resolve(
        self,
        name: str,
        allowed: frozenset[ToolId],
        names: WireNames,
        turn: Turn,
        *,
        finder: str = meta_tools.SEARCH,
    ) -> ToolId:
        """The tool of a name, if it may be used; else ToolNotAvailable with names that are near, or NotApproved."""
        tool = names.resolve(name)
        if tool is not None and self._trust is not None and self._may_be_told_of(tool, turn):
            self._trust.check(tool)
        if tool is None or tool not in allowed:
            near = self._near(name, allowed, names)
            raise ToolNotAvailable(name, near, remedy=f"Find tools with {finder}.")
        return tool

    def _includes(self, tool: ToolId) -> bool:
        return self._toolset is None or self._toolset.includes(tool)

    def _may_be_told_of(self, tool: ToolId, turn: Turn) -> bool:
        """Whether the caller would have a right to it, were it not held back: to others it does not exist."""
        if tool not in self._held_back:
            return False
        eligibility = Eligibility([Tool(id=tool)], [rule for each in self._settings.rules for rule in rules(each)])
        return bool(eligibility.of(turn).allowed.all())

    def _near(self, name: str, allowed: Iterable[ToolId], names: WireNames) -> list[str]:
        allowed = frozenset(allowed)
        known = {names.of[tool]: tool for tool in self.catalog.position if tool in allowed}
        sharing = [names.of[tool] for tool in names.shared.get(name, ()) if tool in allowed]
        return sharing or difflib.get_close_matches(name, known, n=SUGGESTIONS, cutoff=SIMILAR)

    def _begin_indexing(self) -> None:
        self._unindexed = True
        if self._indexing is None or self._indexing.done():
            self._indexing = asyncio.create_task(self._index())

    async def _index(self) -> None:
        """Many changes at once, as when servers start, are one (M18). A request may take them in before this does.

        Embedding takes every core: it waits until servers have had their moment to start.
        """
        while self._unindexed:
            await asyncio.sleep(COALESCE_SECONDS)
            self._unindexed = False
            self.refresh()
            self._say_unmatched()
            if self.board.catalog.fingerprint != self._announced:
                self._announced = self.board.catalog.fingerprint
                await self._changed()
            await self._fleet.settled(self._patience)
            if self._unindexed:
                continue
            try:
                await self.board.warm()
                await self._categorize()
            except Exception:
                LOGGER.exception("Indexing failed; searches go by words alone")

    async def _categorize(self) -> None:
        """Clusters of thousands of tools take a moment: not on the event loop (P25)."""
        board = self.board
        catalog = board.catalog
        if self._settings.categories in ("auto", "clusters"):
            vectors = await board.vectors()
            if board.catalog is catalog:
                categories = await asyncio.to_thread(self._categories_of, catalog, vectors)
                if self.board is board and board.catalog is catalog:
                    self._categories = categories

    def _categories_of(self, catalog: Catalog, vectors: Floats | None) -> Mapping[ToolId, str]:
        """``vectors`` are those of this very catalog: it may be another one by the time the thread is done."""
        chosen = self._settings
        return categories_of(catalog.tools, chosen.categories, chosen.category_patterns, vectors)

    def _say_unmatched(self) -> None:
        """What a toolset names and no server has, once all servers have been heard of."""
        if self._toolset is None or not all(status.heard_of for status in self._fleet.status()):
            return
        unmatched = self._toolset.unmatched(self._fleet.catalog())
        if unmatched and unmatched != self._unmatched:
            LOGGER.warning("Toolset %r names what is not there: %s", self._toolset.name, "; ".join(unmatched))
        self._unmatched = unmatched

    def _named(self, catalog: Catalog) -> None:
        """What is held back keeps its name: the names of others do not depend on it. What nobody ever approved takes
        none that another tool has, so that it shadows none."""
        renamed = dict(self._toolset.renamed) if self._toolset else {}
        tools = [*catalog.position, *self._held_back]
        new = [tool for tool in self._held_back if self._trust is not None and self._trust.is_new(tool)]
        known = {tool.name for tool in tools if tool not in new} if new else frozenset()
        renamed = {tool: f"{tool.server}{SEPARATOR}{tool.name}" for tool in new if tool.name in known} | renamed
        self.names: Callable[[int | None], WireNames] = lru_cache(maxsize=8)(
            lambda longest: exposure.wire_names(tools, longest=longest, renamed=renamed)
        )
        self._categories = None
        self._small = exposure.is_small(catalog, self._settings)
