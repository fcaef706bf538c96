"""The routing of a board: its own tools and those of the servers it shares."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from threading import Lock
from typing import Any

from pegboard.board_search import found_tools
from pegboard.catalog import Catalog
from pegboard.compose import Parts, as_configured, build_routing, summaries
from pegboard.errors import ConfigError, PegboardError
from pegboard.habits import habits_of
from pegboard.library.board_approvals import Groups, OwnApprovals
from pegboard.library.board_results import READ_RESULT, reader
from pegboard.library.given_tools import AGENT, LOCAL, GivenTools
from pegboard.library.item_search import ItemSearch, Kinds, asked_kinds
from pegboard.library.matches import ToolMatches, checked_limit, matches_of
from pegboard.library.runtime import BoardRuntime, reset_at_fork
from pegboard.library.small_boards import passes_whole
from pegboard.library.turns import Said, remembered, turn_of
from pegboard.model import Call, Decision, Tool, ToolId, Turn
from pegboard.protection import kind_of, known_classes
from pegboard.protocols import VectorIndex
from pegboard.retrieval import Progress
from pegboard.retrieval.search_index import SearchIndex
from pegboard.routing.decisions import widened, with_active
from pegboard.routing_board import RoutingBoard
from pegboard.sequence_change import carried_over

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFrom:
    """What a routing was built from: opened parts, own tools, how often servers had changed theirs, how often other
    tools of the board's own were held back, and the catalog before the settings changed it."""

    parts: Parts
    given: GivenTools
    changes: int
    approvals: OwnApprovals
    held_back: int
    catalog: Catalog


class BoardRouting:
    """Opens on first use, and is renewed on the first turn after its tools have changed.

    ``aside`` is for tools that come and go with requests: their vectors are compared in memory and never written to the
    configured index.
    """

    def __init__(self, shared: BoardRuntime, given: GivenTools, items: ItemSearch, *, aside: bool = False) -> None:
        self.shared = shared
        self.changing = Lock()
        """Held while a thread makes new ones of them, so that no other thread's change is lost."""
        self.items = items
        self._aside = aside
        self._reader = reader() if shared.settings.results.cuts else None
        self.given = given
        self._now: tuple[RoutingBoard, BuiltFrom] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._searched: tuple[Catalog, SearchIndex] | None = None
        self._protected: tuple[Catalog, tuple[Tool, ...], tuple[bool, ...]] | None = None
        reset_at_fork(self)

    @property
    def given(self) -> GivenTools:
        """The board's own tools; may be replaced at any time. Raises ConfigError where a server has their name."""
        return self._given

    @given.setter
    def given(self, given: GivenTools) -> None:
        servers = self.shared.settings.servers
        own = {server.name for server, _ in given.groups} & {LOCAL, AGENT}
        for name in sorted(own | ({self._reader[0].name} if self._reader else set())):
            if name in servers and not servers[name].disabled:
                raise ConfigError(
                    f"A server is called {name!r}, which is what the board calls tools that no server lists.",
                    remedy="Give the server another name in the configuration.",
                )
        self._given = given

    @property
    def routing(self) -> RoutingBoard:
        return self._current() or self.shared.run(self.ready())

    async def ready(self) -> RoutingBoard:
        """The routing; call it in the portal's loop."""
        parts = await self.shared.opened()
        if self._now is not None:
            await self._now[1].approvals.refresh()
        current = self._current()
        if current is None:
            await asyncio.to_thread(known_classes)  # reads a table, once
            async with self.shared.renewing:
                current = self._current() or await self._renewed(parts)
        return current

    async def definition(self, tool: ToolId) -> Tool:
        """The definition of a tool as far as it is known; call it in the portal's loop."""
        catalog = (await self.ready()).catalog
        return catalog[tool] if tool in catalog else Tool(id=tool)

    def forget(self) -> object:
        """Reset after a fork; returns everything that belongs to the parent process."""
        theirs = self._now, self._warming
        self._now = self._warming = None
        self.changing = Lock()
        return theirs

    def _current(self) -> RoutingBoard | None:
        """The current routing if nothing has changed since."""
        if self._now is None:
            return None
        (routing, seen), shared = self._now, self.shared
        fresh = seen.parts is shared.parts and seen.given is self.given and seen.changes == shared.changes
        return routing if fresh and seen.held_back == seen.approvals.changes else None

    def check_approved(self, tool: ToolId) -> None:
        """Raises NotApproved for a tool that is held back."""
        self.shared.check_approved(tool)
        if self._now is not None:
            self._now[1].approvals.check(tool)

    def check_name(self, name: str) -> None:
        """Raises NotApproved for a call of a tool of the board's own that is held back."""
        own = (tool for _, tools in self.given.groups for tool in tools) if self._is_watched else ()
        for tool in own:
            if name in (tool.name, str(tool.id)):
                self.check_approved(tool.id)

    def checked_routing(self, call: Call) -> RoutingBoard:
        """`routing`, unless the call is of a tool that is held back: raises NotApproved."""
        routing = self.routing
        self.check_name(call.name)
        return routing

    @property
    def _is_watched(self) -> bool:
        return self._now is not None and self._now[1].approvals.is_on

    async def _renewed(self, parts: Parts) -> RoutingBoard:
        settings, given, changes = self.shared.settings, self.given, self.shared.changes
        before = self._now
        approvals = (
            OwnApprovals(settings, parts) if before is None or before[1].parts is not parts else before[1].approvals
        )
        own = await approvals.admitted(given.groups)
        held_back = approvals.changes
        catalog = self._catalog(own)
        if before is None or before[1].parts is not parts:
            mine = replace(parts, index=_in_memory, fallback_index=_in_memory) if self._aside else parts
            patient = settings.index_wait is None
            name = _name_of(given.groups)
            routing = await asyncio.to_thread(build_routing, settings, catalog, parts=mine, patient=patient, name=name)
            self._warm(routing)
        else:
            routing = before[0]
            known = before[1].catalog
            if (catalog.tools, catalog.servers) != (known.tools, known.servers):
                named = as_configured(summaries(settings).put_on(catalog), settings)
                await asyncio.to_thread(routing.replace_catalog, named)
                self._warm(routing)
        seen = BuiltFrom(
            parts=parts, given=given, changes=changes, approvals=approvals, held_back=held_back, catalog=catalog
        )
        self._now = (routing, seen)
        return routing

    def _warm(self, routing: RoutingBoard) -> None:
        """Embed in the background, if turns do not wait for it to end."""
        if self.shared.settings.index_wait is not None:
            self._warming = asyncio.create_task(_warmed(routing))

    async def turn(self, said: Said, session: str | None, fields: Mapping[str, Any]) -> Turn:
        """The turn of a conversation, with the rights of this process unless it says others, or none."""
        turn = replace(turn_of(said), **fields)
        if session is not None:
            turn = await remembered((await self.shared.opened()).sessions, turn, session)
        if turn.scopes is None:
            turn = replace(turn, scopes=frozenset(self.shared.settings.scopes))
        return replace(turn, habits=turn.habits or habits_of("", "library"))

    @property
    def is_empty(self) -> bool:
        """Whether there are neither tools nor servers that could list any."""
        return not (self.given.groups or self.shared.settings.enabled_servers or self._reader)

    async def route(
        self,
        said: Said,
        session: str | None,
        refused: Sequence[str],
        kinds: Kinds,
        fields: Mapping[str, Any],
        *,
        whole: bool = False,
    ) -> Decision:
        """The decision for a turn; call it in the portal's loop. With ``whole`` all tools of a small board
        pass, and nothing is ranked."""
        asked = asked_kinds(kinds)
        routing = await self.ready()
        await self.indexed()
        turn = await self.turn(said, session, fields)
        is_whole = whole and passes_whole(routing.allowed(turn), routing.catalog, self.shared.settings)
        routed = await (routing.unranked(turn) if is_whole else routing.route(turn))
        if routing.learner is not None:
            routing.learner.searched(turn.session.id, routed.habits, routed.query)
        if "tool" in asked:
            protected = [*self._protected_tools(routing.catalog), *([READ_RESULT] if self._reader else [])]
            decision = widened(with_protected(routed, routing.catalog, protected), routing.catalog, refused)
        else:
            decision = with_active(routed, routing.catalog, [])
        items = self.items.found(decision.query, kinds)
        return replace(decision, items=items) if items else decision

    def _protected_tools(self, catalog: Catalog) -> Sequence[ToolId]:
        """The board's own tools that are protected (`pegboard.protection`). Tools of MCP servers come from catalogs and
        are never protected, whatever their names."""
        if self._protected is None or self._protected[0] is not catalog:
            own = tuple(chain.from_iterable(catalog.of_server(server.name) for server, _ in self.given.groups))
            _, before, known = self._protected or (None, (), ())
            flags = carried_over(before, known, own, lambda new: [bool(kind_of(tool.name)) for tool in new])
            self._protected = catalog, own, flags
        return [tool.id for tool in compress(*self._protected[1:])]

    async def search(
        self, query: str, limit: int, session: str | None, kinds: Kinds, fields: Mapping[str, Any]
    ) -> ToolMatches:
        """What matches a query; call it in the portal's loop."""
        asked, most = asked_kinds(kinds), checked_limit(limit)
        items = self.items.found(query, kinds)
        if "tool" not in asked:
            return ToolMatches(query=query, items=items)
        return replace(await self._tools_found(query, most, session, fields), items=items)

    async def warm(self, progress: Progress | None) -> None:
        await (await self.ready()).warm(progress)

    async def _tools_found(self, query: str, limit: int, session: str | None, fields: Mapping[str, Any]) -> ToolMatches:
        routing, index = await self.ready(), await self.search_index()
        await self.indexed()
        turn = await self.turn(query, session, fields)

        def ask(text: str) -> Turn:
            return replace(turn, messages=Turn.ask(text).messages)

        found = await found_tools(routing, index, ask, query)
        if routing.learner is not None:
            routing.learner.searched(turn.session.id, found.decision.habits, found.decision.query)
        return matches_of(found, routing.catalog, limit)

    async def search_index(self) -> SearchIndex:
        """What searches need of the current tools, made when it is first needed; call it in the portal's loop."""
        catalog = (await self.ready()).catalog
        if self._searched is None or self._searched[0] is not catalog:
            before = None if self._searched is None else self._searched[1]
            made = await asyncio.to_thread(SearchIndex, catalog.tools, catalog.servers, before=before)
            self._searched = (catalog, made)
        return self._searched[1]

    async def indexed(self) -> None:
        """Wait until the tools are embedded, but no longer than ``index_wait`` seconds."""
        if self._warming is not None and not self._warming.done():
            await asyncio.wait([self._warming], timeout=self.shared.settings.index_wait)

    def _catalog(self, own: Groups) -> Catalog:
        groups = {server.name: (server, tools) for server, tools in own}
        if self._reader is not None:
            groups[self._reader[0].name] = self._reader
        before = None if self._now is None else self._now[1].catalog
        return Catalog.build([*(groups | dict(self.shared.listed())).values()], before=before)


async def _warmed(routing: RoutingBoard) -> None:
    try:
        await routing.warm()
    except PegboardError as error:  # words rank until a later turn can embed
        LOGGER.warning("The tools could not be embedded: %s", error)


def _name_of(own: Groups) -> str:
    """What a board calls its vectors. Without tools of its own, it shares those of the configured servers; tools of two
    boards' own are called `local`, so that each would remove the other's."""
    ids = sorted(str(tool.id) for _, tools in own for tool in tools)
    return f"_own-{hashlib.sha256('/'.join(ids).encode('utf-8', 'surrogatepass')).hexdigest()[:24]}" if ids else ""


def _in_memory(_board: str) -> VectorIndex | None:
    return None


def with_protected(decision: Decision, catalog: Catalog, protected: Iterable[ToolId]) -> Decision:
    """The decision plus those of the protected tools that the caller may use."""
    missing = [tool for tool in protected if tool in decision.reachable and tool not in decision.active]
    return with_active(decision, catalog, [*decision.active, *missing]) if missing else decision
