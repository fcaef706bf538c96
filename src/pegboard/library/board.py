"""The board that agents use: tools in, the few that a turn needs out, calls checked and carried out."""

from __future__ import annotations

import asyncio
import inspect
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from pegboard.board import Board as Routing
from pegboard.catalog import Catalog
from pegboard.errors import PegboardError, ToolNotAvailable
from pegboard.library.configuration import settings_of
from pegboard.library.execution import outcome, result_of_error, result_of_server, result_of_value
from pegboard.library.memory import answered, remembered
from pegboard.library.opened import Opened
from pegboard.library.protection import with_protected
from pegboard.library.sources import Function, given_tools
from pegboard.library.turns import Said, turn_of
from pegboard.model import Call, Decision, JsonObject, Outcome, Result, Session, ToolId
from pegboard.routing import check_available
from pegboard.routing.widening import widened
from pegboard.seams import Encoder, Sessions

Gate = Literal["active", "reachable"] | Callable[[Call, Decision], ToolId]
"""Which calls pass: of tools that are active, of those the caller may use, or what a function of one's own says."""


class Board:
    """Every tool an agent could use; each turn is handed the few it needs.

    ``tools`` are functions, schemas as any provider has them, pairs of a schema and what to call, a `Catalog` or the
    path of a catalog; ``config`` is a file with MCP servers, or what such a file says; ``url`` another Pegboard's.
    ``encoder`` and ``store`` (of sessions) take the place of the default ones; ``gate`` says which calls pass. All
    other ``options`` are fields of `Settings`. Nothing starts before the first use, and `close`, or leaving it as a
    context, ends the servers. Methods may be called from any thread and loop; each async one that agents need has a
    twin ending in ``_now`` that works everywhere, a notebook included. Raises ConfigError and CatalogError.

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
        config: str | Path | Mapping[str, Any] | None = None,
        url: str | None = None,
        encoder: Encoder | None = None,
        store: Sessions | None = None,
        gate: Gate = "active",
        **options: Any,
    ) -> None:
        parts = {"encoder": encoder, "sessions": store}
        given = given_tools(tools)
        self._settings = settings_of(config, url, options)
        self._functions: Mapping[ToolId, Function] = given.functions
        self._admit = partial(check_available, gate=gate) if isinstance(gate, str) else gate
        self._opened = Opened(self._settings, given, {name: part for name, part in parts.items() if part is not None})
        self._latest: Decision | None = None
        self._finalizer = weakref.finalize(self, Opened.close, self._opened)

    @property
    def catalog(self) -> Catalog:
        """The tools there are now; waits for servers that start.

        >>> len(Board([{"name": "tide"}]).catalog)
        1
        """
        return self._opened.routing.catalog

    @property
    def scopes(self) -> frozenset[str]:
        """What the caller of this process may do.

        >>> Board(scopes=("mail",)).scopes
        frozenset({'mail'})
        """
        return frozenset(self._settings.scopes)

    @property
    def routing(self) -> Routing:
        """The routing behind the board, of which gateways are made; waits for servers that start.

        >>> Board([{"name": "tide"}]).routing.profile.name
        'hybrid'
        """
        return self._opened.routing

    async def opened(self) -> Routing:
        """`routing`, without keeping the caller's loop waiting.

        >>> import asyncio
        >>> asyncio.run(Board([{"name": "tide"}]).opened()).profile.name
        'hybrid'
        """
        return await self._opened.wait(self._opened.ready())

    async def route(
        self, said: Said, *, session: str | None = None, refused: Sequence[str] = (), **fields: Any
    ) -> Decision:
        """The tools of a turn: a `Turn`, what the user says, or messages as OpenAI and Anthropic have them.

        ``session`` names the conversation, whose answered tools count for preconditions. ``refused`` are the names that
        calls were refused for since the user spoke: from the second on, each doubles the selection. ``fields`` are the
        turn's own: ``state``, ``scopes``, ``max_price``, ``deadline``, ``id``.

        >>> import asyncio
        >>> board = Board([{"name": "tide", "description": "When the tide comes"}])
        >>> [str(tool) for tool in asyncio.run(board.route("the tide in Bergen?")).active]
        ['local/tide']
        """
        decision = await self._opened.wait(self._route(said, session, refused, fields))
        self._latest = decision
        return decision

    def route_now(
        self, said: Said, *, session: str | None = None, refused: Sequence[str] = (), **fields: Any
    ) -> Decision:
        """`route` for code that is not async, whether or not a loop runs.

        >>> Board([{"name": "tide", "description": "When the tide comes"}]).route_now("the tide?").query
        'the tide?'
        """
        decision = self._opened.run(self._route(said, session, refused, fields))
        self._latest = decision
        return decision

    def check(self, call: Call, decision: Decision | None = None) -> ToolId:
        """The tool of a call that a model made. Raises ToolNotAvailable and ArgumentsInvalid, each with its remedy.

        Without ``decision`` the latest one of this board counts; give it where conversations go on side by side.

        >>> board = Board([{"name": "tide", "description": "When the tide comes"}])
        >>> decision = board.route_now("the tide?")
        >>> str(board.check(Call(name="tide"), decision))
        'local/tide'
        """
        return self._checked(self._opened.routing, call, decision)

    async def execute(self, call: Call, decision: Decision | None = None) -> Result:
        """Check a call and carry it out. What a model or a tool does wrong is a result that says so, no exception.

        Functions of your own that are async run on your loop, others in a thread.

        >>> import asyncio
        >>> board = Board([{"name": "tide", "description": "When the tide comes"}])
        >>> decision = board.route_now("the tide?")
        >>> asyncio.run(board.execute(Call(name="flood"), decision)).is_error
        True
        """
        routing = await self._opened.wait(self._opened.ready())
        try:
            tool = self._checked(routing, call, decision)
        except PegboardError as error:
            return result_of_error(None, error)
        asked = decision or self._latest
        return await self._called(tool, call.arguments, Session() if asked is None else asked.session)

    def execute_now(self, call: Call, decision: Decision | None = None) -> Result:
        """`execute` for code that is not async.

        >>> def double(number: int) -> int:
        ...     "Twice a number"
        ...     return 2 * number
        >>> board = Board([double])
        >>> board.execute_now(Call(name="double", arguments={"number": 21}), board.route_now("double 21")).structured
        42
        """
        return self._opened.run(self.execute(call, decision))

    async def call(self, tool: ToolId, arguments: JsonObject) -> Result:
        """Carry out a call that was checked; `execute` is both.

        >>> import asyncio
        >>> from pegboard import ToolId
        >>> board = Board([({"name": "tide"}, lambda: "16:20")])
        >>> asyncio.run(board.call(ToolId("local", "tide"), {})).text
        '16:20'
        """
        return await self._called(tool, arguments, Session())

    def call_now(self, tool: ToolId, arguments: JsonObject) -> Result:
        """`call` for code that is not async.

        >>> from pegboard import ToolId
        >>> Board([({"name": "tide"}, lambda: "16:20")]).call_now(ToolId("local", "tide"), {}).text
        '16:20'
        """
        return self._opened.run(self.call(tool, arguments))

    def observe(self, outcome: Outcome) -> None:
        """What came of a call that you carried out yourself; `execute` observes its own. The store is told, too.

        >>> from pegboard import Outcome, ToolId
        >>> Board().observe(Outcome(tool=ToolId("rail", "timetable"), success=True, latency_ms=40))
        """
        self._opened.observe(outcome)

    def replace_tools(self, tools: object) -> None:
        """Other tools of your own from the next turn on; those of servers stay.

        >>> board = Board([{"name": "tide"}])
        >>> board.replace_tools([{"name": "wind"}])
        >>> [tool.name for tool in board.catalog.tools]
        ['wind']
        """
        given = given_tools(tools)
        self._functions = given.functions
        self._opened.given = given

    def close(self) -> None:
        """End what was started: servers, connections, the thread. Used again, it starts again.

        >>> Board().close()
        """
        self._opened.close()

    def __enter__(self) -> Board:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Board:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    async def _route(
        self, said: Said, session: str | None, refused: Sequence[str], fields: Mapping[str, Any]
    ) -> Decision:
        routing = await self._opened.ready()
        turn = replace(turn_of(said), **fields)
        if session is not None:
            turn = await remembered(self._opened.parts.sessions, turn, session)
        if not turn.scopes:
            turn = replace(turn, scopes=self.scopes)
        own = (server.name for server, _ in self._opened.given.groups)
        decision = with_protected(await routing.route(turn), routing.catalog, own)
        return widened(decision, routing.catalog, refused)

    def _checked(self, routing: Routing, call: Call, decision: Decision | None) -> ToolId:
        decision = decision or self._latest
        if decision is None:
            raise ToolNotAvailable(call.name, [], remedy="Route a turn first.")
        return routing.check(call, decision, admit=self._admit)

    async def _called(self, tool: ToolId, arguments: JsonObject, session: Session) -> Result:
        started, function = time.monotonic(), self._functions.get(tool)
        failure: Exception | None = None
        try:
            if function is None:
                result = result_of_server(tool, await self._opened.wait(self._opened.call(tool, arguments)))
            else:
                value = await asyncio.to_thread(function, arguments)
                result = result_of_value(tool, await value if inspect.isawaitable(value) else value)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is what the model is told
            failure, result = error, result_of_error(tool, error)
        seconds = time.monotonic() - started
        await self._opened.wait(self._opened.ready())
        self._opened.observe(outcome(tool, seconds, failed=result.is_error, error=failure))
        if not result.is_error:
            await self._opened.wait(answered(self._opened.parts.sessions, session, tool))
        return result
