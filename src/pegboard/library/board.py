"""The board for agents: route a turn to a few tools, check the model's calls and execute them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pegboard.catalog import Catalog
from pegboard.compose import events_and
from pegboard.errors import ConfigError, PegboardError, ToolNotAvailable
from pegboard.library.board_calls import called
from pegboard.library.board_results import READ_RESULT, BoardResults
from pegboard.library.board_router import BoardRouting
from pegboard.library.configuration import check_parts, settings_of
from pegboard.library.context_manager import ClosedAtTheEnd
from pegboard.library.execution import result_of_error
from pegboard.library.given_items import given_items
from pegboard.library.given_tools import given_tools, joined, without
from pegboard.library.item_search import Kinds, item_search
from pegboard.library.matches import ToolMatches, with_matches
from pegboard.library.runtime import BoardRuntime
from pegboard.library.turns import Said
from pegboard.model import Call, Decision, JsonObject, Outcome, Result, Session, ToolId, ToolStatistics
from pegboard.protocols import Encoder, EventSink, Sessions
from pegboard.retrieval import Progress
from pegboard.routing import check_available
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard.settings.result_settings import ResultForm

GATES = ("active", "reachable")
Gate = Literal["active", "reachable"] | Callable[[Call, Decision], ToolId]
"""Which calls are allowed: calls of active tools, of all tools that the caller may use, or as your own function
decides."""


class Board(ClosedAtTheEnd):
    """Every tool an agent could use; each turn gets the few that it needs.

    ``tools`` are functions, schemas in any provider's form, pairs of a schema and a callable, a `Catalog`, or the path
    of a catalog; ``skills`` are folders of `SKILL.md` files, ``agents`` A2A agent cards, ``prompts`` and ``resources``
    as MCP lists them; ``most`` is how many of each of these kinds a turn gets (3), ``budgets`` how many tokens of their
    names, descriptions and addresses. ``config`` is a file with MCP servers, the content of such a file, or loaded
    `Settings`; ``url`` is the address of another Pegboard. ``encoder`` and ``store`` (for sessions) replace the
    defaults; ``events`` gets every event besides the log; ``gate`` says which calls are allowed. All other ``options``
    are fields of `Settings`.

    Nothing starts before the first use; `close`, or leaving the context manager, stops the servers. Methods may be
    called from any thread and event loop; each async method that agents need has a twin ending in ``_now`` that works
    everywhere, including notebooks. Raises ConfigError and CatalogError.

    >>> def tide(harbour: str) -> str:
    ...     "When the tide comes in at a harbour"
    ...     return f"{harbour}: 16:20"
    >>> board = Board([tide])
    >>> decision = board.route_now("when is high tide in Bergen?")
    >>> board.execute_now(Call(name="tide", arguments={"harbour": "Bergen"}), decision).text
    'Bergen: 16:20'
    """

    def __init__(
        self,
        tools: object = (),
        *,
        skills: object = (),
        agents: object = (),
        prompts: object = (),
        resources: object = (),
        most: Mapping[str, int] | None = None,
        budgets: Mapping[str, int] | None = None,
        config: Settings | str | Path | Mapping[str, Any] | None = None,
        url: str | None = None,
        encoder: Encoder | None = None,
        store: Sessions | None = None,
        events: EventSink | None = None,
        gate: Gate = "active",
        **options: Any,
    ) -> None:
        check_parts(encoder=encoder, store=store, events=events)
        parts = {"encoder": encoder, "sessions": store, "events": None if events is None else events_and(events)}
        given = given_tools(tools)
        self._settings = settings_of(config, url, options)
        items = item_search(self._settings.items, given_items(skills, agents, prompts, resources), most, budgets)
        if not callable(gate) and gate not in GATES:
            raise ConfigError(f"There is no gate {gate!r}.", remedy=f"Give {' or '.join(GATES)}, or a function.")
        self._gate = gate
        self._admit = partial(check_available, gate=gate) if isinstance(gate, str) else gate
        self._shared = BoardRuntime(self._settings, {name: part for name, part in parts.items() if part is not None})
        self._opened = BoardRouting(self._shared, given, items)
        self._results = BoardResults(self._shared, self._opened.definition)
        self._latest: Decision | None = None
        self._first: Board | None = None
        """The board that this one was derived from. The reference keeps it alive: its finalizer closes what both
        share."""
        self._finalizer = weakref.finalize(self, BoardRuntime.abandon, self._shared)
        self._finalizer.atexit = False  # an exiting interpreter closes what is open, and waits for it

    @property
    def catalog(self) -> Catalog:
        """The current tools; waits for servers that are starting.

        >>> len(Board([{"name": "tide"}]).catalog)
        1
        """
        return self._opened.routing.catalog

    @property
    def gate(self) -> Gate:
        """Which calls `check` and `execute` allow.

        >>> Board().gate
        'active'
        """
        return self._gate

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes of the caller of this process.

        >>> Board(scopes=("mail",)).scopes
        frozenset({'mail'})
        """
        return frozenset(self._settings.scopes)

    @property
    def is_empty(self) -> bool:
        """Whether there are neither tools nor servers that could list any; starts nothing.

        >>> Board().is_empty, Board([{"name": "tide"}]).is_empty
        (True, False)
        """
        return self._opened.is_empty

    @property
    def routing(self) -> RoutingBoard:
        """The routing behind the board, from which gateways are built; waits for servers that are starting.

        >>> Board([{"name": "tide"}]).routing.profile.name
        'hybrid'
        """
        return self._opened.routing

    @property
    def results(self) -> BoardResults:
        """Shortens results by the settings `results`, also those of calls that you executed yourself.

        >>> Board(results="shaped").results.is_on
        True
        """
        return self._results

    async def opened(self) -> RoutingBoard:
        """`routing` without blocking the caller's event loop.

        >>> import asyncio
        >>> asyncio.run(Board([{"name": "tide"}]).opened()).profile.name
        'hybrid'
        """
        return await self._shared.wait(self._opened.ready())

    async def route(
        self,
        said: Said,
        *,
        session: str | None = None,
        refused: Sequence[str] = (),
        kinds: Kinds = None,
        whole_if_small: bool = False,
        **fields: Any,
    ) -> Decision:
        """The tools of a turn, given as a `Turn`, the user's text, or messages in the form of OpenAI (Chat Completions,
        Responses), Anthropic, Gemini or LangChain. Raises ConfigError for anything else.

        ``session`` names the conversation, whose answered tools count for preconditions. ``refused`` are the tool names
        of calls that were refused since the user's last message: from the second on, each doubles the selection.
        ``kinds`` are what is asked for: ``tool``, ``skill``, ``agent``, ``prompt``, ``resource``; all by default.
        With ``whole_if_small`` a turn gets all of fewer than ``eager_tools`` tools or ``eager_tokens`` tokens, not
        ranked, unless ``k`` or another option says how many it gets. ``fields`` are fields of the turn: ``state``,
        ``scopes``, ``max_price``, ``deadline``, ``id``.

        >>> import asyncio
        >>> board = Board([{"name": "tide", "description": "When the tide comes"}])
        >>> [str(tool) for tool in asyncio.run(board.route("the tide in Bergen?")).active]
        ['local/tide']
        """
        work = self._opened.route(said, session, refused, kinds, fields, whole=whole_if_small)
        decision = await self._shared.wait(work)
        self._latest = decision
        return decision

    def route_now(
        self,
        said: Said,
        *,
        session: str | None = None,
        refused: Sequence[str] = (),
        kinds: Kinds = None,
        whole_if_small: bool = False,
        **fields: Any,
    ) -> Decision:
        """`route` for synchronous code, whether or not an event loop is running.

        >>> Board([{"name": "tide", "description": "When the tide comes"}]).route_now("the tide?").query
        'the tide?'
        """
        work = self._opened.route(said, session, refused, kinds, fields, whole=whole_if_small)
        decision = self._shared.run(work)
        self._latest = decision
        return decision

    async def search(
        self, query: str, *, limit: int = 10, session: str | None = None, kinds: Kinds = None, **fields: Any
    ) -> ToolMatches:
        """The tools that match a query, at most ``limit``: the way back to those that a turn did not get.

        A search may say that nothing matches, unlike a turn, which always gets tools. ``session``, ``kinds`` and
        ``fields`` are those of `route`: only tools that the caller may use are found. Give what was found to the model
        with `with_found`.

        >>> import asyncio
        >>> board = Board([{"name": "tide", "description": "When the tide comes"}, {"name": "wind"}])
        >>> [each.name for each in asyncio.run(board.search("tide")).tools][:1]
        ['tide']
        """
        return await self._shared.wait(self._opened.search(query, limit, session, kinds, fields))

    def search_now(
        self, query: str, *, limit: int = 10, session: str | None = None, kinds: Kinds = None, **fields: Any
    ) -> ToolMatches:
        """`search` for synchronous code.

        >>> Board([{"name": "tide", "description": "When the tide comes"}]).search_now("qwertz xyzzy").tools
        ()
        """
        return self._shared.run(self._opened.search(query, limit, session, kinds, fields))

    def with_found(self, decision: Decision, found: ToolMatches) -> Decision:
        """The decision with the tools that a search found active too, so that the model is given them and may call
        them.

        >>> board = Board([{"name": "tide", "description": "When the tide comes"}, {"name": "wind"}], k=1)
        >>> decision = board.route_now("the wind?")
        >>> [tool.name for tool in board.with_found(decision, board.search_now("tide")).tools]
        ['tide', 'wind']
        """
        self._latest = with_matches(decision, found, self._opened.routing.catalog)
        return self._latest

    async def statistics(self) -> Mapping[ToolId, ToolStatistics]:
        """The statistics of every tool that was called, also by other processes on the same store.

        >>> import asyncio
        >>> from pegboard import ToolId
        >>> board = Board([({"name": "tide"}, lambda: "16:20")])
        >>> _ = board.execute_now(Call(name="tide"), board.route_now("the tide?"))
        >>> asyncio.run(board.statistics())[ToolId("local", "tide")].successes > 0
        True
        """
        return await self._shared.wait(self._shared.statistics())

    def check(self, call: Call, decision: Decision | None = None) -> ToolId:
        """The tool that a model's call means. Raises ToolNotAvailable and ArgumentsInvalid, each with its remedy.

        Without ``decision`` this board's latest decision applies; pass one if several conversations run concurrently.
        With ``pins`` or ``scan`` a tool that is held back raises NotApproved.

        >>> board = Board([{"name": "tide", "description": "When the tide comes"}])
        >>> decision = board.route_now("the tide?")
        >>> str(board.check(Call(name="tide"), decision))
        'local/tide'
        """
        return self._opened.checked_routing(call).check(call, self._decided(call, decision), admit=self._admit)

    async def execute(
        self, call: Call, decision: Decision | None = None, *, results: ResultForm | None = None
    ) -> Result:
        """Check a call and execute it. Errors of the model or the tool become an error result, not an exception.

        Your own async functions run on your event loop, other functions in a thread. ``results`` is the form of this
        result, such as `whole`, in place of that of the settings.

        >>> import asyncio
        >>> board = Board([{"name": "tide", "description": "When the tide comes"}])
        >>> decision = board.route_now("the tide?")
        >>> asyncio.run(board.execute(Call(name="flood"), decision)).is_error
        True
        """
        routing = await self._shared.wait(self._opened.ready())
        try:
            self._opened.check_name(call.name)
            asked = self._decided(call, decision)
            tool = await routing.admitted(call, lambda: self._admit(call, asked))
        except PegboardError as error:
            return result_of_error(None, error)
        result = await self._called(tool, call.arguments, asked.session, results)
        if tool != READ_RESULT and routing.learner is not None and not result.is_error:
            routing.learner.called(asked.habits, asked.query, [tool])
        return result

    def execute_now(self, call: Call, decision: Decision | None = None, *, results: ResultForm | None = None) -> Result:
        """`execute` for synchronous code.

        >>> def double(number: int) -> int:
        ...     "Twice a number"
        ...     return 2 * number
        >>> board = Board([double])
        >>> board.execute_now(Call(name="double", arguments={"number": 21}), board.route_now("double 21")).structured
        42
        """
        return self._shared.run(self.execute(call, decision, results=results))

    async def call(self, tool: ToolId, arguments: JsonObject, *, results: ResultForm | None = None) -> Result:
        """Execute a call that has been checked; `execute` does both, and says what ``results`` is.

        >>> import asyncio
        >>> from pegboard import ToolId
        >>> board = Board([({"name": "tide"}, lambda: "16:20")])
        >>> asyncio.run(board.call(ToolId("local", "tide"), {})).text
        '16:20'
        """
        return await self._called(tool, arguments, Session(), results)

    def call_now(self, tool: ToolId, arguments: JsonObject, *, results: ResultForm | None = None) -> Result:
        """`call` for synchronous code.

        >>> from pegboard import ToolId
        >>> Board([({"name": "tide"}, lambda: "16:20")]).call_now(ToolId("local", "tide"), {}).text
        '16:20'
        """
        return self._shared.run(self.call(tool, arguments, results=results))

    def observe(self, outcome: Outcome) -> None:
        """Record the outcome of a call that you executed yourself, also in the store; `execute` records its own.

        >>> from pegboard import Outcome, ToolId
        >>> Board().observe(Outcome(tool=ToolId("rail", "timetable"), success=True, latency_ms=40))
        """
        self._shared.observe(outcome)

    def replace_tools(self, tools: object) -> None:
        """Replace your own tools from the next turn on; the tools of servers stay.

        >>> board = Board([{"name": "tide"}])
        >>> board.replace_tools([{"name": "wind"}])
        >>> [tool.name for tool in board.catalog.tools]
        ['wind']
        """
        self._opened.given = given_tools(tools)

    def add_tools(self, tools: object) -> None:
        """Add tools of your own from the next turn on; one of the same name and server is replaced.

        Nothing is read or embedded again but the new ones.

        >>> board = Board([{"name": "tide"}])
        >>> board.add_tools([{"name": "wind"}])
        >>> [tool.name for tool in board.catalog.tools]
        ['tide', 'wind']
        """
        added = given_tools(tools)
        with self._opened.changing:
            self._opened.given = joined(self._opened.given, added)

    def remove_tools(self, names: Collection[str]) -> None:
        """Remove tools of your own from the next turn on, by name or by ``server/name``.

        >>> board = Board([{"name": "tide"}, {"name": "wind"}])
        >>> board.remove_tools(["wind"])
        >>> [tool.name for tool in board.catalog.tools]
        ['tide']
        """
        with self._opened.changing:
            self._opened.given = without(self._opened.given, names)

    async def warm(self, progress: Progress | None = None) -> None:
        """Embed all tools now instead of with the first turn; ``progress`` is called with how many of how many are.

        Calls of ``progress`` come from the board's own thread.

        >>> import asyncio
        >>> asyncio.run(Board([{"name": "tide"}]).warm())
        """
        await self._shared.wait(self._opened.warm(progress))

    def warm_now(self, progress: Progress | None = None) -> None:
        """`warm` for synchronous code.

        >>> Board([{"name": "tide"}]).warm_now()
        """
        self._shared.run(self._opened.warm(progress))

    def with_tools(self, tools: object) -> Board:
        """A board with other tools of your own that shares servers, encoder and store, for example for another user's
        rights.

        This board does not change, and any number of such boards may serve at once. Closing one closes all.

        >>> board = Board([{"name": "tide"}])
        >>> [tool.name for tool in board.with_tools([{"name": "wind"}]).catalog.tools], len(board.catalog)
        (['wind'], 1)
        """
        other = copy(self)
        other._opened = BoardRouting(self._shared, given_tools(tools), self._opened.items, aside=True)
        other._results = BoardResults(self._shared, other._opened.definition)
        other._latest = None
        other._first = self
        return other

    def close(self) -> None:
        """Stop servers, connections and the thread. The board starts again if it is used again.

        >>> Board().close()
        """
        self._shared.close()

    def _decided(self, call: Call, decision: Decision | None) -> Decision:
        decision = decision or self._latest
        if decision is None:
            raise ToolNotAvailable(call.name, [], remedy="Route a turn first.")
        return decision

    async def _called(self, tool: ToolId, arguments: JsonObject, session: Session, form: ResultForm | None) -> Result:
        if tool == READ_RESULT:
            return await self._results.read(arguments, session=session.id)
        definition = await self._shared.wait(self._opened.definition(tool))
        function, admit = self._opened.given.functions.get(tool), self._opened.check_approved
        result = await called(self._shared, function, definition, arguments, session, admit)
        asked = str(arguments) if form or self._results.is_on else ""
        return await self._results.shaped(result, session=session.id, form=form, asked=asked)
