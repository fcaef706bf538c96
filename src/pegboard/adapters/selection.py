"""The tools of a turn, in any framework.

the framework's tools and messages ─► a board for this set ─► decision ─► tools to show, gate, `search_tools`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from pegboard.adapters.boards import BoardsBySet
from pegboard.adapters.call_history import answered_names, found_names, refused_names
from pegboard.adapters.read_cache import Read, remembered
from pegboard.catalog import Catalog
from pegboard.errors import ConfigError
from pegboard.gateways.llm.tool_search.tool import ABOUT, FOUND, NAME, nothing_asked, refused
from pegboard.gateways.llm.tool_search.tool import found as found_text
from pegboard.library import Board
from pegboard.library.framework_tools import FrameworkTool, framework_tool
from pegboard.library.given_tools import LOCAL
from pegboard.library.turns import Said, turn_of
from pegboard.model import AgentState, Decision, ToolId, Turn

SEARCH_TOOLS = NAME
SEARCH_ABOUT = ABOUT
MOST_FOUND = FOUND
SEARCH_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What you want to do, in a few words"}},
    "required": ["query"],
    "additionalProperties": False,
}
SUGGESTIONS = 20
"""Callable tools that a refusal names at most."""
T = TypeVar("T")
Fields = Callable[[Any], Mapping[str, Any]]
"""Fields of the turn (``scopes``, ``only``, ``state`` …) by what the framework knows of the request."""


def no_fields(_context: Any) -> Mapping[str, Any]:
    return {}


def query_of(arguments: object) -> object:
    """What a call of `search_tools` asks for, by its arguments as the model sent them: an object, or its JSON. None if
    they are neither."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    return arguments.get("query") if isinstance(arguments, Mapping) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTools:
    """What a search tells the model, and the names of the tools that it found."""

    text: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTools(Generic[T]):
    """What one model call may use. ``tools`` are the framework's objects, in the order in which they were given,
    ``names`` those of them that have a schema, ``unread`` the others; ``ranked`` those with a schema and the next
    best, best first. A search may find ``left_out``; ``search`` is its name, empty where it has none. ``board`` is None
    if there was nothing to choose among."""

    tools: tuple[T, ...]
    names: frozenset[str]
    unread: frozenset[str] = frozenset()
    ranked: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    search: str = SEARCH_TOOLS
    board: Board | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_search(self) -> bool:
        """Whether the search is offered: there is something to find, and no tool of the agent has its name."""
        return bool(self.left_out and self.search) and self.search not in self.names | self.unread

    def refusal(self, name: str) -> str | None:
        """The error for the model if it calls a tool that this turn does not have (Tool Attention §5.5)."""
        if name in self.names or name in self.unread or (name == self.search and self.has_search):
            return None
        return refused(name, sorted(self.names)[:SUGGESTIONS], search=self.search if self.has_search else "")


class ToolSelector:
    """Selects the tools of each turn from those that the framework has for it; serves any number of requests at once.

    ``board`` has the encoder, the store, the rules and the options; its own tools are not selected from. ``fields``
    gives the fields of a turn, such as the caller's ``scopes``, by what the framework calls the context of a request.
    ``way_back`` offers `search_tools`. Adapters say how their framework's tools are read (`reading`). Raises
    ConfigError for a board whose gate is a function.
    """

    def __init__(
        self,
        board: Board | None = None,
        *,
        fields: Fields = no_fields,
        way_back: bool = True,
    ) -> None:
        if board is not None and callable(board.gate):
            raise ConfigError(
                "The board has a function as gate, which no call of an agent passes: the adapter checks calls itself.",
                remedy="Leave the gate out: `fields` may give `only`, and `scopes` for `rules`.",
            )
        self._boards = BoardsBySet(board or Board())
        self._fields = fields
        self._way_back = way_back
        self._read: Read = framework_tool
        self._readers: dict[Read, ToolSelector] = {}

    @property
    def has_way_back(self) -> bool:
        """Whether `search_tools` is offered where tools are left out."""
        return self._way_back

    def reading(self, read: Read = framework_tool, *, once: bool = False) -> ToolSelector:
        """This selector, for tools that ``read`` reads; with ``once``, each object only once, where that is slow."""
        made = self._readers.get(read)
        if made is None:
            made = copy(self)
            made._read = remembered(read) if once else read
            self._readers[read] = made
        return made

    async def select(
        self,
        tools: Sequence[T],
        said: Said,
        context: object = None,
        *,
        found: Sequence[str] = (),
        refused: Sequence[str] = (),
        forced: Collection[str] = (),
        whole_if_small: bool = True,
    ) -> TurnTools[T]:
        """The tools of a turn. ``found`` and ``refused`` are the tools that searches found and the names that were
        called in vain, where ``said`` does not have them; ``forced`` are those that the request must call. Few tools
        pass whole and unranked, unless an option of the board says how many a turn gets."""
        given = self._given(tools)
        asked = self._asked(given, said, context, refused)
        if asked is None:
            return TurnTools(tools=tuple(tools), names=frozenset(), unread=_unread(given))
        decision = await asked.board.route(asked.turn, refused=asked.refused, whole_if_small=whole_if_small)
        return self._selection(given, asked, decision, [*found, *forced])

    def select_now(
        self,
        tools: Sequence[T],
        said: Said,
        context: object = None,
        *,
        found: Sequence[str] = (),
        refused: Sequence[str] = (),
        forced: Collection[str] = (),
        whole_if_small: bool = True,
    ) -> TurnTools[T]:
        """`select` for synchronous frameworks."""
        given = self._given(tools)
        asked = self._asked(given, said, context, refused)
        if asked is None:
            return TurnTools(tools=tuple(tools), names=frozenset(), unread=_unread(given))
        decision = asked.board.route_now(asked.turn, refused=asked.refused, whole_if_small=whole_if_small)
        return self._selection(given, asked, decision, [*found, *forced])

    async def search(self, selection: TurnTools[Any], query: object) -> FoundTools:
        """The answer of `search_tools`."""
        board = selection.board
        if board is None or not isinstance(query, str) or not query.strip():
            return FoundTools(text=nothing_asked())
        decision = await board.route(Turn.ask(query), **selection.fields)
        return _answer(decision, (await board.opened()).catalog, selection)

    def search_now(self, selection: TurnTools[Any], query: object) -> FoundTools:
        """`search` for synchronous frameworks."""
        board = selection.board
        if board is None or not isinstance(query, str) or not query.strip():
            return FoundTools(text=nothing_asked())
        return _answer(board.route_now(Turn.ask(query), **selection.fields), board.catalog, selection)

    def _given(self, tools: Sequence[T]) -> list[tuple[T, FrameworkTool | None]]:
        return [(tool, self._read(tool)) for tool in tools]

    def _asked(
        self, given: Sequence[tuple[Any, FrameworkTool | None]], said: Said, context: object, refused: Sequence[str]
    ) -> Asked | None:
        """None where there is nothing to choose among. If several tools share a name, the last counts."""
        by_name = {read.name: read for _, read in given if read is not None}
        if not by_name:
            return None
        turn, fields = turn_of(said), self._fields(context)
        state = AgentState(tool_outputs=answered_names(turn.messages))
        return Asked(
            board=self._boards.of([*by_name.values()]),
            turn=replace(turn, **{"state": state, **fields}),
            fields=fields,
            refused=[*refused_names(turn.messages), *refused],
        )

    def _selection(
        self,
        given: Sequence[tuple[T, FrameworkTool | None]],
        asked: Asked,
        decision: Decision,
        wanted: Sequence[str],
    ) -> TurnTools[T]:
        allowed = _local(decision.reachable)
        names = _local(decision.active) | (allowed & {*found_names(asked.turn.messages), *wanted})
        return TurnTools(
            tools=tuple(tool for tool, read in given if read is None or read.name in names),
            names=names,
            unread=_unread(given),
            ranked=tuple(each.tool.name for each in decision.candidates if each.score > 0),
            left_out=allowed - names if self._way_back else frozenset(),
            board=asked.board,
            fields={name: getattr(asked.turn, name) for name in (*asked.fields, "state")},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A turn, and the board that routes it. ``refused`` are names that were called in vain."""

    board: Board
    turn: Turn
    fields: Mapping[str, Any]
    refused: Sequence[str]


def _local(tools: Iterable[ToolId]) -> frozenset[str]:
    """The framework's tools among a board's, by name; others are those of the board's servers."""
    return frozenset(tool.name for tool in tools if tool.server == LOCAL)


def _unread(given: Iterable[tuple[Any, FrameworkTool | None]]) -> frozenset[str]:
    """The names of the tools that have no schema; those that a provider hosts may have none."""
    return frozenset(name for tool, read in given if read is None for name in _names(tool))


def _names(tool: Any) -> Iterator[str]:
    """What a framework may know a tool by."""
    for holder in (tool, getattr(tool, "metadata", None)):
        name = holder.get("name") if isinstance(holder, Mapping) else getattr(holder, "name", None)
        if isinstance(name, str):
            yield name


def _answer(decision: Decision, catalog: Catalog, selection: TurnTools[Any]) -> FoundTools:
    wanted = (each.tool for each in decision.candidates if each.score > 0 and each.tool.name in selection.left_out)
    tools = [catalog[tool] for tool in islice(wanted, MOST_FOUND)]
    return FoundTools(text=found_text(tools), names=tuple(tool.name for tool in tools))
