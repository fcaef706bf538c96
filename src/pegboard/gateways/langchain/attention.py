"""Tool Attention as in its paper (§5.1): what to do before a model is called and after it has answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool

from pegboard.catalog import Catalog
from pegboard.errors import ArgumentsInvalid, ConfigError, PegboardError
from pegboard.gateways.langchain import model_request as rendering
from pegboard.gateways.langchain import way_back
from pegboard.gateways.langchain.cache_aware import CacheAwareTools, model_of
from pegboard.gateways.langchain.call_gate import named, refusal
from pegboard.gateways.langchain.exact_calls import as_written, asked_name, exact, exact_names
from pegboard.gateways.langchain.messages import (
    ACTIVE,
    CALL_TOOL,
    SEARCH,
    TEXTS,
    TOOLSET,
    active_in,
    called_name,
    facts_of,
    refused_names,
    texts_in,
    turn_of,
)
from pegboard.gateways.langchain.model_request import Rendering, is_constant
from pegboard.gateways.langchain.tools import fitting, is_refused_by, langchain_tool
from pegboard.gateways.langchain.toolsets import NONE, Toolset, Toolsets
from pegboard.gateways.llm.tool_search.tool import ABOUT, not_answered, not_found_now, nothing_asked
from pegboard.library import Board
from pegboard.library.given_tools import AGENT, given_tools
from pegboard.model import AgentState, Call, Decision, Tool, ToolId, Turn
from pegboard.routing.decisions import with_active
from pegboard.routing_board import RoutingBoard

State = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A model request. ``update`` must be merged into the state before `after_model` reads it."""

    messages: list[AnyMessage]
    system_message: SystemMessage | None = None
    tools: list[Any] = field(default_factory=list)
    tool_choice: Any = None
    update: Mapping[str, Any] = field(default_factory=dict)

    @property
    def prompt(self) -> list[AnyMessage]:
        """What to send to the model: the system message, if there is one, and the others."""
        return [self.system_message, *self.messages] if self.system_message is not None else self.messages

    def override(self, **changes: Any) -> Request:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedCall:
    """A call that passed the gate: its tool, the call as the model meant it, and the tool for LangChain to run.

    ``fits`` is False for arguments that LangChain itself refuses when it runs the tool.
    """

    tool: ToolId
    call: Call
    runnable: BaseTool
    fits: bool = True

    def as_call(self, asked: ToolCall | Mapping[str, Any]) -> ToolCall:
        return ToolCall(name=self.tool.name, args=dict(self.call.arguments), id=asked["id"], type="tool_call")


R = TypeVar("R", bound="Request | ModelRequest[Any]")


@dataclass(frozen=True, kw_only=True)
class Response:
    """A model's answer after the gate: ``calls`` passed; ``refused`` explains why others did not; ``found`` answers
    searches for tools.

    ``update`` has the messages for the state. Calls of the constant tool are unwrapped.
    """

    message: AIMessage
    calls: tuple[ToolCall, ...]
    refused: tuple[ToolMessage, ...]
    found: tuple[ToolMessage, ...] = ()

    @property
    def update(self) -> dict[str, Any]:
        return {"messages": [self.message, *self.found, *self.refused]}


class ToolAttention:
    """Selects the tools that a model sees, and checks its calls; for LangGraph nodes and your own loops.

    ``tools``, ``config``, ``url`` and ``options`` are those of `pegboard.Board`, except ``gate``; the tools in a
    request are added. ``facts`` reads the facts for preconditions from the agent's state. ``way_back`` offers a search
    for the tools that a request does not have; ``cache_aware`` keeps tools, or sends all, where the provider's prompt
    cache makes that cheaper. Everything persistent is in the state as plain JSON, so that any checkpointer and any
    process can continue a conversation.

    >>> from langchain_core.messages import HumanMessage
    >>> attention = ToolAttention([{"name": "tide", "description": "When the tide comes"}])
    >>> state = {"messages": [HumanMessage("when is high tide?", id="1")]}
    >>> request = attention.before_model(state, Request(messages=state["messages"]))
    >>> [tool.name for tool in request.tools]
    ['tide']
    """

    def __init__(
        self,
        tools: object = (),
        *,
        rendering: Rendering = "native",
        facts: Callable[[State], AgentState] = facts_of,
        way_back: bool = True,
        cache_aware: bool = True,
        **options: Any,
    ) -> None:
        self.rendering: Rendering = rendering
        self._facts = facts
        self._way_back = way_back
        own = given_tools(tools)
        self.board = Board(own, **options)
        if callable(self.board.gate):
            raise ConfigError(
                "A function as gate is for a board's own `check` and `execute`: calls of an agent would not pass it.",
                remedy="Leave it out: `rules` say what a call needs, and other middleware can wrap calls.",
            )
        self._toolsets = Toolsets(self.board, own)
        self._cache = CacheAwareTools() if cache_aware else None
        self._shown: dict[tuple[ToolId, str], tuple[Tool, BaseTool]] = {}

    def before_model(self, state: State, request: Request) -> Request:
        """The request with the tools of its turn, and the ``update`` for the state."""
        changed, update = self.prepared(state, request)
        return changed.override(update=update)

    def after_model(self, state: State, response: AIMessage, tools: Sequence[object] = ()) -> Response:
        """The answer after the gate; the state must include the request's ``update``.

        ``tools`` are those of the request: calls of schemas among them are your own to run, and pass unchecked. A state
        out of a checkpoint has no others.
        """
        yours = {name for tool in tools if isinstance(tool, dict) for name in named_by(tool)}
        calls: list[ToolCall] = []
        refused: list[ToolMessage] = []
        found: list[ToolMessage] = []
        exactly = exact(response, active_in(state), self.rendering).tool_calls
        for call, meant in zip(response.tool_calls, exactly, strict=True):
            if self.is_search(state, call):
                found.append(self.searched(state, call, tools))
                continue
            if call["name"] in yours and not self.selects(state, call, tools):
                calls.append(call)
                continue
            try:
                calls.append(self.admitted(state, meant, tools).as_call(call))
            except PegboardError as error:
                refused.append(refusal(call, error))
        return Response(message=response, calls=tuple(calls), refused=tuple(refused), found=tuple(found))

    def prepared(self, state: State, request: R) -> tuple[R, dict[str, Any]]:
        """The request with the tools of its turn, and the update for the state."""
        toolset, turn = self._toolset(request.tools), self._turn(state, request)
        board = self._toolsets.board(toolset)
        if board.is_empty and self.rendering == "native":
            return request, _nothing_selected(state)
        decision = board.route_now(turn, refused=refused_names(request.messages), whole_if_small=True)
        return self._rendered(state, request, turn, decision, toolset, board.routing)

    async def aprepared(self, state: State, request: R) -> tuple[R, dict[str, Any]]:
        """The async version of `prepared`."""
        toolset, turn = self._toolset(request.tools), self._turn(state, request)
        board = self._toolsets.board(toolset)
        if board.is_empty and self.rendering == "native":
            return request, _nothing_selected(state)
        decision = await board.route(turn, refused=refused_names(request.messages), whole_if_small=True)
        return self._rendered(state, request, turn, decision, toolset, await board.opened())

    def exact(self, response: ModelResponse[Any], update: State) -> ModelResponse[Any]:
        """The response with each call under the exact name of its tool, as other middleware looks for it; ``update`` is
        that of the request."""
        active = active_in(update)
        result = [
            exact(each, active, self.rendering) if isinstance(each, AIMessage) else each for each in response.result
        ]
        return replace(response, result=result)

    def admitted(
        self, state: State, call: ToolCall | Mapping[str, Any], tools: Sequence[object] = (), *, run: bool = False
    ) -> AdmittedCall:
        """The tool of a call that passes the gate and fits its schema. Raises ToolNotAvailable, ArgumentsInvalid.

        ``tools`` are the agent's current tools: another run may continue a conversation. With ``run``, where
        LangChain runs the tool next, arguments that it refuses itself are left to it.
        """
        toolset = self._called_in(state, tools)
        routing = self._toolsets.board(toolset).routing
        meant, checked, gate = self._asked(state, call, toolset, routing)
        try:
            return self._admitted(routing.admit(checked, gate), meant, toolset, routing)
        except ArgumentsInvalid:
            if not run or not is_refused_by(toolset.own(tool := gate()), meant.arguments):
                raise
            return replace(self._admitted(tool, meant, toolset, routing), fits=False)

    async def aadmitted(
        self, state: State, call: ToolCall | Mapping[str, Any], tools: Sequence[object] = (), *, run: bool = False
    ) -> AdmittedCall:
        """The async version of `admitted`."""
        toolset = self._called_in(state, tools)
        routing = await self._toolsets.board(toolset).opened()
        meant, checked, gate = self._asked(state, call, toolset, routing)
        try:
            return self._admitted(await routing.admitted(checked, gate), meant, toolset, routing)
        except ArgumentsInvalid:
            if not run or not is_refused_by(toolset.own(tool := gate()), meant.arguments):
                raise
            return replace(self._admitted(tool, meant, toolset, routing), fits=False)

    def is_search(self, state: State, call: ToolCall | Mapping[str, Any]) -> bool:
        """Whether a call is of the search that the last request offered."""
        return bool(state.get(SEARCH)) and call["name"] == state.get(SEARCH)

    def searched(self, state: State, call: ToolCall | Mapping[str, Any], tools: Sequence[object] = ()) -> ToolMessage:
        """The answer of a search. The tools that it finds are in the following requests of the conversation."""
        toolset = self._searched_in(state, tools)
        if toolset is None:
            return _answered(call, not_answered())
        board = self._toolsets.board(toolset)
        turn = self._search_turn(state, call)
        try:
            decision = None if turn is None else board.route_now(turn)
        except PegboardError as error:
            return _answered(call, not_found_now(error.message))
        return self._search_answer(state, call, decision, board.routing)

    async def asearched(
        self, state: State, call: ToolCall | Mapping[str, Any], tools: Sequence[object] = ()
    ) -> ToolMessage:
        """The async version of `searched`."""
        toolset = self._searched_in(state, tools)
        if toolset is None:
            return _answered(call, not_answered())
        board = self._toolsets.board(toolset)
        turn = self._search_turn(state, call)
        try:
            decision = None if turn is None else await board.route(turn)
        except PegboardError as error:
            return _answered(call, not_found_now(error.message))
        return self._search_answer(state, call, decision, await board.opened())

    def _search_turn(self, state: State, call: ToolCall | Mapping[str, Any]) -> Turn | None:
        """The turn that a search is ranked by, with the conversation's rights; None if it asks for nothing."""
        query = call["args"].get("query")
        if not isinstance(query, str) or not query.strip():
            return None
        return replace(Turn.ask(query), state=self._facts(state))

    @staticmethod
    def _search_answer(
        state: State, call: ToolCall | Mapping[str, Any], decision: Decision | None, routing: RoutingBoard
    ) -> ToolMessage:
        active = frozenset(active_in(state).values())
        text = nothing_asked() if decision is None else way_back.found(decision, routing.catalog, active)
        return _answered(call, text)

    def selects(self, state: State, call: ToolCall | Mapping[str, Any], tools: Sequence[object] = ()) -> bool:
        """Whether a call means a tool that is selected here. Any other may be of another middleware, which added its
        tool to the request later."""
        toolset = self._called_in(state, tools)
        return self._selects(state, call, self._toolsets.board(toolset).routing)

    async def aselects(self, state: State, call: ToolCall | Mapping[str, Any], tools: Sequence[object] = ()) -> bool:
        """The async version of `selects`."""
        toolset = self._called_in(state, tools)
        return self._selects(state, call, await self._toolsets.board(toolset).opened())

    def _selects(self, state: State, call: ToolCall | Mapping[str, Any], routing: RoutingBoard) -> bool:
        name, active = call["name"], active_in(state)
        wrapped = name == CALL_TOOL and self.rendering == "text"
        known = any(name in (tool.id.name, str(tool.id)) for tool in routing.catalog.tools)
        return wrapped or known or name in active

    def _asked(
        self, state: State, call: ToolCall | Mapping[str, Any], toolset: Toolset, routing: RoutingBoard
    ) -> tuple[Call, Call, Callable[[], ToolId]]:
        """The call, the call with coerced arguments to check, and a function that finds its tool by the current
        state."""
        meant, asked = Call(name=call["name"], arguments=call["args"]), asked_name(call, self.rendering)
        active = active_in(state)
        turn = replace(turn_of(state.get("messages") or (), self._facts(state)), scopes=self.board.scopes)
        own = toolset.own(exact_names(active).get(meant.name))
        checked = replace(meant, arguments=fitting(own, meant.arguments))
        return meant, checked, lambda: named(checked, active, routing.allowed(turn), asked)

    def _admitted(self, tool: ToolId, meant: Call, toolset: Toolset, routing: RoutingBoard) -> AdmittedCall:
        return AdmittedCall(tool=tool, call=meant, runnable=self._runnable(routing.catalog[tool], tool.name, toolset))

    def _toolset(self, tools: Sequence[object]) -> Toolset:
        return self._toolsets.of([tool for tool in tools if isinstance(tool, BaseTool) and not is_constant(tool)])

    def _called_in(self, state: State, tools: Sequence[object]) -> Toolset:
        """The tools that the model saw; in a later run or another process, those of them that the agent has there."""
        active = {tool.name for tool in active_in(state).values() if tool.server == AGENT}
        known = self._toolsets.known(state.get(TOOLSET) or "")
        return known or self._toolset([tool for tool in tools if isinstance(tool, BaseTool) and tool.name in active])

    def _searched_in(self, state: State, tools: Sequence[object]) -> Toolset | None:
        """The tools of the request that offered a search. None in a later run or another process: which of the agent's
        tools that request had is not known there, and others must not be found."""
        key = state.get(TOOLSET)
        had_none = key == "" or (key is None and not self._toolset(tools).tools)
        return NONE if had_none else self._toolsets.known(key or "")

    def _runnable(self, tool: Tool, name: str, toolset: Toolset) -> BaseTool:
        """The tool for LangChain to run: the registered tool, or one that calls the board."""
        own = toolset.own(tool.id)
        if own is not None:
            return own if own.name == name else own.model_copy(update={"name": name})
        made = self._shown.get((tool.id, name))
        if made is None or made[0] is not tool:
            made = self._shown[tool.id, name] = (tool, langchain_tool(tool, name, self.board))
        return made[1]

    def _turn(self, state: State, request: Request | ModelRequest[Any]) -> Turn:
        return turn_of(request.messages, self._facts({**state, "messages": request.messages}))

    def _rendered(
        self, state: State, request: R, turn: Turn, decision: Decision, toolset: Toolset, routing: RoutingBoard
    ) -> tuple[R, dict[str, Any]]:
        catalog = routing.catalog
        hosted = [tool for tool in request.tools if not isinstance(tool, BaseTool)]
        search = way_back.free_name({tool.name for tool in catalog.tools} | {_name_of_hosted(each) for each in hosted})
        decision = kept(forced(decision, catalog, request.tool_choice), catalog, request.messages)
        decision, found = with_found(decision, catalog, way_back.found_before(request.messages, search))
        pool = routing.pool(replace(turn, scopes=self.board.scopes))
        remembered: dict[str, Any] = {}
        if not _is_whole(decision):
            decision, remembered = self._cached(state, request, turn, decision, catalog, found, pool)
        if _is_whole(decision) and self.rendering == "native":
            pool = ""
        searches = self._searches(state, request, search, decision, catalog, pool)
        summaries = rendering.with_summaries(request.system_message, pool, self.rendering, search if searches else "")
        changes: dict[str, Any] = {"system_message": summaries}
        update: dict[str, Any] = {ACTIVE: {decision.name_of(tool): list(tool) for tool in decision.active}}
        if searches or state.get(SEARCH):
            update[SEARCH] = search if searches else ""
        update |= remembered
        if toolset.key or searches:
            update[TOOLSET] = toolset.key
        if self.rendering == "native":
            shown = sorted(decision.tools, key=lambda tool: found.index(tool.id) if tool.id in found else -1)
            offered = [self._runnable(tool, decision.name_of(tool.id), toolset) for tool in shown]
            changes["tools"] = [*offered, *searches, *hosted]
            changes["messages"] = as_written(request.messages)
            if not changes["tools"]:
                changes["tool_choice"] = None
        else:
            texts = texts_in(state)
            added = self._added(decision, texts, request.messages)
            changes["tools"] = [rendering.call_tool(), *searches, *hosted]
            changes["messages"] = rendering.with_texts(as_written(request.messages), added | texts)
            update[TEXTS] = added | _gone(texts, [*(state.get("messages") or ()), *request.messages])
        return cast("R", request.override(**changes)), update

    def _cached(
        self,
        state: State,
        request: Request | ModelRequest[Any],
        turn: Turn,
        decision: Decision,
        catalog: Catalog,
        found: Sequence[ToolId],
        pool: str,
    ) -> tuple[Decision, dict[str, Any]]:
        """The decision plus the tools that cost less to keep; where the prompt cache is unknown, and as `text`, which
        changes nothing anyway, the decision itself."""
        model = model_of(request) if self._cache is not None and self.rendering == "native" else None
        if self._cache is None or model is None or not way_back.may_search(request.tool_choice):
            return decision, {}
        beside = sum(catalog.counter.count([pool, ABOUT] if self._way_back else [pool]))
        return self._cache.kept(state, model, turn, decision, catalog, found, beside)

    def _searches(
        self,
        state: State,
        request: Request | ModelRequest[Any],
        name: str,
        decision: Decision,
        catalog: Catalog,
        pool: str,
    ) -> list[BaseTool]:
        """The search, if there is anything to find. As `text` it stays where it was offered before, without a list:
        nothing that was sent may change."""
        if not self._way_back or not way_back.may_search(request.tool_choice):
            return []
        missing = way_back.left_out(decision, catalog)
        if self.rendering == "text":
            return [way_back.search_tool(name, (), pool, catalog)] if missing or state.get(SEARCH) else []
        return [way_back.search_tool(name, missing, pool, catalog)] if missing else []

    def _added(self, decision: Decision, texts: Mapping[str, str], messages: Sequence[AnyMessage]) -> dict[str, str]:
        """The text for the last message unless it already has one: a text never changes once it was sent."""
        last = messages[-1] if messages else None
        if last is None or last.id is None or not rendering.can_carry(last) or last.id in texts:
            return {}
        text = rendering.shown(decision, texts, messages)
        return {last.id: text} if text else {}


def forced(decision: Decision, catalog: Catalog, choice: Any) -> Decision:
    """The decision plus the tool that ``tool_choice`` names (P8); words such as ``any`` name none."""
    names = named_by(choice)
    return _with_named(decision, catalog, names) if names else decision


def named_by(said: Any) -> list[str]:
    """The name in a tool choice or a schema of any provider, if there is one.

    >>> named_by({"type": "function", "function": {"name": "ask_user"}}), named_by({"type": "web_search"})
    (['ask_user'], [])
    """
    match said:
        case {"function": {"name": str(name)}} | {"name": str(name)} | str(name):
            return [name]
    return []


def kept(decision: Decision, catalog: Catalog, messages: Sequence[AnyMessage]) -> Decision:
    """If no tool is active, those that the history calls: providers reject calls of tools that the request lacks
    (P14)."""
    if decision.active:
        return decision
    called = [called_name(call) for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
    return _with_named(decision, catalog, called)


def with_found(decision: Decision, catalog: Catalog, names: Sequence[str]) -> tuple[Decision, list[ToolId]]:
    """The decision plus what searches found before and may still be used, and those tools in the order in which they
    were found: they come last, so that what precedes them stays cached."""
    by_name = {decision.name_of(tool): tool for tool in decision.reachable} if names else {}
    found = [by_name[name] for name in names if name in by_name and by_name[name] not in decision.active]
    return (with_active(decision, catalog, [*decision.active, *found]) if found else decision), found


def _is_whole(decision: Decision) -> bool:
    """Whether nothing is left out that could be called."""
    return len(decision.active) == len(decision.reachable)


def _name_of_hosted(tool: object) -> str:
    """The name of a tool that LangChain gives to the model as it is: a provider's own, or a function."""
    return str(tool.get("name") if isinstance(tool, Mapping) else getattr(tool, "__name__", ""))


def _nothing_selected(state: State) -> dict[str, Any]:
    """The update of a conversation whose agent has no tools now."""
    return {name: none for name, none in ((ACTIVE, {}), (SEARCH, "")) if state.get(name)}


def _gone(texts: Mapping[str, str], messages: Sequence[AnyMessage]) -> dict[str, None]:
    """None for each text whose message is in the conversation no more, as after a summary."""
    return dict.fromkeys(texts.keys() - {message.id for message in messages})


def _answered(call: ToolCall | Mapping[str, Any], text: str) -> ToolMessage:
    return ToolMessage(content=text, name=call["name"], tool_call_id=str(call["id"]))


def _with_named(decision: Decision, catalog: Catalog, names: Sequence[str]) -> Decision:
    wished = [tool for tool in decision.reachable if decision.name_of(tool) in names or tool.name in names]
    if set(wished) <= set(decision.active):
        return decision
    return with_active(decision, catalog, [*decision.active, *wished])
