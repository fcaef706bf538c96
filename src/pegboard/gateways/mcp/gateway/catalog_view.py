"""The current tools and their wire names: the snapshot from which requests are answered."""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from types import MappingProxyType

from pegboard.catalog import Catalog, WireNames, continued
from pegboard.catalog.names import SEPARATOR
from pegboard.compose import as_configured, rules, summaries
from pegboard.empty_sets import EMPTY, frozen
from pegboard.errors import ToolNotAvailable
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.fleet_protocol import Servers
from pegboard.gateways.mcp.gateway.toolset_view import ToolsetView
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.gateways.mcp.trust.user_approvals import ApprovedTools
from pegboard.model import Floats, Tool, ToolId, Turn
from pegboard.protocols import Clock
from pegboard.retrieval.categories import categories_of
from pegboard.retrieval.search_index import SearchIndex
from pegboard.routing import Eligibility
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings

LOGGER = logging.getLogger(__name__)

MAX_NAME = 128
"""Longest tool name the protocol allows (MCP 2025-11-25, tool names)."""
SUGGESTIONS = 5
SIMILAR = 0.7
COALESCE_SECONDS = 0.05
MANY = 500
"""Tools whose categories take long enough to compute that other requests would notice."""
MOST_NAMINGS = 64
"""Namings of one catalog that are remembered, of all users and kinds of clients that have it."""
MOST_RIGHTS = 1_000
"""Combinations of rights and answers for which resolved names are remembered."""
SEARCH_SHARE = 0.4
"""The share of the start-up wait after which a search no longer waits for slow servers."""
UNSURE_SHARE, MOST_UNSURE_SECONDS = 3.0, 15.0
"""How long a search that found nothing certain waits for servers by default: start-up waits, and seconds at most."""


class CatalogView:
    """A board over the tools of a fleet, kept up to date. ``changed`` is awaited after the tools have changed."""

    def __init__(
        self,
        settings: Settings,
        board: RoutingBoard,
        fleet: Servers,
        *,
        clock: Clock,
        toolset: ToolsetView | None = None,
        approvals: ApprovedTools | None = None,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        self.board = board
        self._settings = settings
        self._summaries = summaries(settings)
        self._fleet = fleet
        self._clock = clock
        self._toolset = toolset
        self._approvals = approvals
        self._held_back: tuple[ToolId, ...] = ()
        self._changed = changed
        self._wait_until = clock.monotonic() + settings.start_wait
        usual = min(settings.start_wait * UNSURE_SHARE, MOST_UNSURE_SECONDS)
        self._unsure_wait = usual if settings.search_wait is None else settings.search_wait
        self._awaited: frozenset[str] = EMPTY
        """The servers that a search has waited for in vain."""
        self._complete = False
        self._categories: Mapping[ToolId, str] | None = None
        self._categorizing = asyncio.Lock()
        self._stale = False
        self._unindexed = True
        self._announced: str | None = board.catalog.fingerprint
        self._unmatched: tuple[str, ...] = ()
        self._indexing: asyncio.Task[None] | None = None
        self._search_index: tuple[Catalog, SearchIndex] | None = None
        self._named(board.catalog)

    @property
    def is_small(self) -> bool:
        """Whether the board is known to be small. Once every server has reported, a restart does not make that unknown
        again."""
        self._complete = self._complete or all(status.heard_of for status in self._fleet.status())
        return self._complete and self._small

    def renew(self) -> None:
        """The servers' tools may have changed: refresh at the next use, and index them in the background."""
        self._stale = True
        self._begin_indexing()

    def index(self) -> None:
        """Index the initial tools in the background, unless that was done or is in progress."""
        if self._unindexed and not self.is_indexing:
            self._begin_indexing()

    @property
    def is_indexing(self) -> bool:
        """Whether tools are being embedded."""
        return self._indexing is not None and not self._indexing.done()

    def close(self) -> None:
        if self._indexing is not None:
            self._indexing.cancel()

    def adopt(self, settings: Settings, board: RoutingBoard, toolset: ToolsetView | None) -> None:
        """Switch to another configuration; tools that were embedded before are not embedded again."""
        self.board, self._settings, self._toolset = board, settings, toolset
        self._summaries = summaries(settings)
        self._named(board.catalog)
        self._announced = None
        self.renew()

    async def started(self, *, some: bool = False) -> None:
        """Wait for servers to start, once per process and no longer than ``start_wait`` (M15).

        With ``some``, wait for all of them during part of that time, and for the rest of it only until any of them has
        tools.
        """
        if some:
            await self._fleet.settled(max(0.0, self._patience - self._settings.start_wait * (1 - SEARCH_SHARE)))
        await self._fleet.settled(self._patience, some=some)
        if self._approvals is not None:
            await self._approvals.settled(self._patience)
        self.refresh()

    async def reviewed(self, tool: ToolId) -> None:
        """Wait for the store's first answer about a tool that was listed a moment ago; not for long."""
        if tool in self._held_back and self._approvals is not None:
            with suppress(ToolNotAvailable):
                await self._approvals.admit(tool)
            self.refresh()

    @property
    def never_listed(self) -> list[str]:
        """The servers that are starting and have never listed their tools."""
        return [status.name for status in self._fleet.status() if not status.heard_of]

    async def more_started(self) -> bool:
        """Wait for servers that have never listed their tools, no longer than a search that found nothing certain may
        take, and in vain for each server only once. True if the tools have changed."""
        self._awaited = self._awaited.intersection(self.never_listed)
        if self._awaited.issuperset(self.never_listed):
            return False
        before, until = self.board.catalog.fingerprint, self._clock.monotonic() + self._unsure_wait
        await self._fleet.settled(self._unsure_wait)
        if self._approvals is not None:
            await self._approvals.settled(max(0.0, until - self._clock.monotonic()))
        self._awaited = self._awaited.union(self.never_listed)
        self.refresh()
        return self.board.catalog.fingerprint != before

    @property
    def _patience(self) -> float:
        """Seconds left of the start-up wait."""
        return max(0.0, self._wait_until - self._clock.monotonic())

    def refresh(self) -> None:
        """Rebuild the board from what the servers list now, if anything has changed."""
        if not self._stale:
            return
        listed = self._fleet.catalog()
        admitted = self._approvals.admitted(listed) if self._approvals else listed
        catalog = as_configured(self._summaries.put_on(admitted), self._settings)
        catalog = self._toolset.apply(catalog) if self._toolset else catalog
        catalog = continued(catalog, self.board.catalog)
        held_back = tuple(tool for tool in listed.position if tool not in admitted and self._includes(tool))
        if catalog.fingerprint != self.board.catalog.fingerprint or held_back != self._held_back:
            self._held_back = held_back
            self.board.replace_catalog(catalog)
            self._named(self.board.catalog)
        self._stale = False

    async def search_index(self) -> SearchIndex:
        """What searches need besides the board's ranking. Built on a thread, with the first search or after indexing
        (P25)."""
        catalog = self.catalog
        if self._search_index is None or self._search_index[0] is not catalog:
            self._search_index = (catalog, await self.board.search_index())
        return self._search_index[1]

    @property
    def categories(self) -> Mapping[ToolId, str]:
        """The category of each tool: from names at first, and from embeddings as well once there are vectors."""
        if self._categories is None:
            self._categories = self._categories_of(self.catalog, None)
        return self._categories

    async def categorized(self) -> None:
        """Compute the categories of many tools on a thread before they are read, not on the event loop (P25)."""
        async with self._categorizing:
            catalog = self.catalog
            if self._is_categorized or len(catalog) <= MANY:
                return
            found = await asyncio.to_thread(self._categories_of, catalog, None)
            if self.catalog is catalog and not self._is_categorized:
                self._categories = found

    @property
    def _is_categorized(self) -> bool:
        return self._categories is not None

    @property
    def category_descriptions(self) -> Mapping[str, str]:
        """Configured descriptions of categories, by category."""
        return self._settings.category_descriptions

    def resolved(self, holder: Holder | None, answered: frozenset[str], longest: int | None) -> dict[str, Tool]:
        """The tools that were resolved for these rights, by the name that was asked for. Preconditions depend on the
        tools that have ``answered``. Forgotten when the tools, the rules or the approvals change."""
        if len(self._resolved) >= MOST_RIGHTS:
            self._resolved.clear()
        return self._resolved.setdefault((holder, answered, longest), {})

    def tool_named(self, name: str) -> Tool | None:
        """The tool of a name, whoever asks."""
        if name not in self._by_name:
            tool = self.names(None).resolve(name)
            if tool is None or tool not in self.catalog:
                return None
            self._by_name[name] = self.catalog[tool]
        return self._by_name[name]

    def resolve(
        self,
        name: str,
        allowed: frozenset[ToolId],
        names: WireNames,
        turn: Turn,
        *,
        finder: str = meta_definitions.SEARCH,
    ) -> ToolId:
        """The tool of a name, if it may be used.

        Raises ToolNotAvailable, with similar names, or NotApproved.
        """
        tool = names.resolve(name)
        if tool is not None and self._approvals is not None and self._is_held_back_for(tool, turn):
            self._approvals.check(tool)
        if tool is None or tool not in allowed:
            near = self._near(name, allowed, names)
            raise ToolNotAvailable(name, near, remedy=f"Find tools with {finder}.")
        return tool

    def _includes(self, tool: ToolId) -> bool:
        return self._toolset is None or self._toolset.includes(tool)

    def _is_held_back_for(self, tool: ToolId, turn: Turn) -> bool:
        """Whether a held-back tool would otherwise be visible to the caller: to all others it does not exist."""
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
            self._indexing = asyncio.create_task(self._indexed())

    async def _indexed(self) -> None:
        """As `_index`, in a task that is forgotten when it ends: each user has one."""
        try:
            await self._index()
        except asyncio.CancelledError:
            self._unindexed = True
            raise
        finally:
            self._indexing = None

    async def _index(self) -> None:
        """Coalesces many changes, as when servers start, into one (M18). A request may refresh earlier.

        Embedding uses every core, so it waits until the servers have had time to start.
        """
        while self._unindexed:
            await asyncio.sleep(COALESCE_SECONDS)
            self._unindexed = False
            self.refresh()
            self._warn_of_unmatched()
            if self.board.catalog.fingerprint != self._announced:
                self._announced = self.board.catalog.fingerprint
                await self._changed()
            await self._fleet.settled(self._patience)
            if self._unindexed:
                continue
            try:
                await self.board.warm()
                await self.search_index()
                await self._categorize()
            except Exception:
                LOGGER.exception("Indexing failed; searches use words only")

    async def _categorize(self) -> None:
        """Clusters thousands of tools on a thread, not on the event loop (P25)."""
        board = self.board
        catalog = board.catalog
        if self._settings.categories in ("auto", "clusters"):
            vectors = await board.vectors()
            if board.catalog is catalog:
                categories = await asyncio.to_thread(self._categories_of, catalog, vectors)
                if self.board is board and board.catalog is catalog:
                    self._categories = categories

    def _categories_of(self, catalog: Catalog, vectors: Floats | None) -> Mapping[ToolId, str]:
        """``vectors`` belong to this very catalog: the current one may be another when the thread is done. The same for
        all users with this catalog."""
        chosen, known = self._settings, catalog.derived.get(("categories", vectors is None))
        if known is None or known[0] is not chosen:
            found = categories_of(catalog.tools, chosen.categories, chosen.category_patterns, vectors)
            known = catalog.derived["categories", vectors is None] = (chosen, found)
        categories: Mapping[ToolId, str] = known[1]
        return categories

    def _warn_of_unmatched(self) -> None:
        """Warn about names in the toolset that no server has, once all servers have reported."""
        if self._toolset is None or not all(status.heard_of for status in self._fleet.status()):
            return
        unmatched = self._toolset.unmatched(self._fleet.catalog())
        if unmatched and unmatched != self._unmatched:
            LOGGER.warning(
                "Toolset %r names tools or servers that do not exist: %s", self._toolset.name, "; ".join(unmatched)
            )
        self._unmatched = unmatched

    def _named(self, catalog: Catalog) -> None:
        """Assign the wire names. Held-back tools keep theirs, so that other names do not depend on them. A tool that
        was never approved gets a qualified name if another tool has its name, so that it shadows none."""
        renamed = dict(self._toolset.renamed) if self._toolset else {}
        tools = [*catalog.position, *self._held_back]
        new = [tool for tool in self._held_back if self._approvals is not None and self._approvals.is_new(tool)]
        known = {tool.name for tool in tools if tool not in new} if new else frozenset()
        renamed = {tool: f"{tool.server}{SEPARATOR}{tool.name}" for tool in new if tool.name in known} | renamed
        of_catalog = catalog.derived.setdefault("wire names", lru_cache(maxsize=MOST_NAMINGS)(partial(_named, catalog)))
        self.names: Callable[[int | None], WireNames] = partial(of_catalog, self._held_back, tuple(renamed.items()))
        self._categories = None
        self._resolved: dict[tuple[Holder | None, frozenset[str], int | None], dict[str, Tool]] = {}
        self._by_name: dict[str, Tool] = {}
        self.catalog, self.pinned, self.size = catalog, frozen(self.board.pinned), len(catalog)
        self._small = is_small(catalog, self._settings)
        self.tokens = sum(catalog.token_counts)
        """Tokens of all definitions, in the form that all token figures use."""


def is_small(catalog: Catalog, settings: Settings) -> bool:
    """Whether the board has fewer than ``eager_tools`` tools or ``eager_tokens`` tokens: filtering would cost more than
    it saves."""
    return len(catalog) < settings.eager_tools or sum(catalog.token_counts) < settings.eager_tokens


def _named(
    catalog: Catalog, held_back: tuple[ToolId, ...], renamed: tuple[tuple[ToolId, str], ...], longest: int | None
) -> WireNames:
    return wire_names([*catalog.position, *held_back], longest=longest, renamed=dict(renamed))


def wire_names(
    tools: Iterable[ToolId], *, longest: int | None = None, renamed: Mapping[ToolId, str] = MappingProxyType({})
) -> WireNames:
    """Names on the wire. Meta-tools keep theirs; an upstream tool of the same name is renamed (M12)."""
    limit = min(MAX_NAME, longest or MAX_NAME)
    return WireNames.build(tools, reserved=meta_definitions.META_TOOLS, limit=limit, renamed=renamed)
