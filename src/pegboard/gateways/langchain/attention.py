"""Tool Attention as the seed has it: what to do before a model is asked, and after it answered (seed 000 §5.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from langchain.agents.middleware import ModelRequest
from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool

from pegboard.errors import PegboardError
from pegboard.gateways.langchain import rendering
from pegboard.gateways.langchain.choices import forced, kept
from pegboard.gateways.langchain.gate import named, refusal, wanted
from pegboard.gateways.langchain.reading import CALL_TOOL, facts_of, refused_names, turn_of
from pegboard.gateways.langchain.rendering import Rendering
from pegboard.gateways.langchain.state import ACTIVE, TEXTS, active_in, texts_in
from pegboard.gateways.langchain.tools import AGENT, board_tool, langchain_tool
from pegboard.library import Board
from pegboard.model import AgentState, Call, Decision, Tool, ToolId, Turn

State = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a model is asked. ``update`` is what the state has to take in before `after_model` reads it."""

    messages: list[AnyMessage]
    system_message: SystemMessage | None = None
    tools: list[Any] = field(default_factory=list)
    tool_choice: Any = None
    update: Mapping[str, Any] = field(default_factory=dict)

    def override(self, **changes: Any) -> Request:
        return replace(self, **changes)


R = TypeVar("R", bound="Request | ModelRequest[Any]")


@dataclass(frozen=True, kw_only=True)
class Response:
    """A model's answer behind the gate: ``calls`` passed, ``refused`` says why the others did not.

    ``update`` has the messages for the state. A call that came through the one constant tool is unwrapped.
    """

    message: AIMessage
    calls: tuple[ToolCall, ...]
    refused: tuple[ToolMessage, ...]

    @property
    def update(self) -> dict[str, Any]:
        return {"messages": [self.message, *self.refused]}


class ToolAttention:
    """Which tools a model is shown, and which of its calls pass; for LangGraph nodes and loops of one's own.

    ``tools``, ``config``, ``url`` and ``options`` are those of `pegboard.Board`; the tools in a request join them.
    ``facts`` reads what preconditions look at from the agent's state. What is to be kept is in the state, as plain
    JSON, so that any checkpointer and any process can go on with it.

    >>> from langchain_core.messages import HumanMessage
    >>> attention = ToolAttention([{"name": "tide", "description": "When the tide comes"}])
    >>> state = {"messages": [HumanMessage("when is high tide?", id="1")]}
    >>> request = attention.before_model(state, Request(messages=state["messages"]))
    >>> [tool.name for tool in request.tools]
    ['tide']
    """

    def __init__(
        self,
        tools: Sequence[object] = (),
        *,
        rendering: Rendering = "native",
        facts: Callable[[State], AgentState] = facts_of,
        **options: Any,
    ) -> None:
        self._own = tuple(tools)
        self.rendering: Rendering = rendering
        self._facts = facts
        self.board = Board(self._own, **options)
        self._registered: dict[str, tuple[BaseTool, Tool]] = {}
        self._shown: dict[tuple[ToolId, str], tuple[Tool, BaseTool]] = {}

    def before_model(self, state: State, request: Request) -> Request:
        """The request with the tools of its turn; ``update`` is for the state."""
        changed, update = self.prepared(state, request)
        return changed.override(update=update)

    def after_model(self, state: State, response: AIMessage) -> Response:
        """The answer behind the gate; the state is the one that took in the request's ``update``."""
        calls: list[ToolCall] = []
        refused: list[ToolMessage] = []
        for call in response.tool_calls:
            try:
                tool = self.admitted(state, call)
            except PegboardError as error:
                refused.append(refusal(call, error))
                continue
            meant = wanted(call).call
            calls.append(ToolCall(name=tool.name, args=dict(meant.arguments), id=call["id"], type="tool_call"))
        return Response(message=response, calls=tuple(calls), refused=tuple(refused))

    def prepared(self, state: State, request: R) -> tuple[R, dict[str, Any]]:
        """The request with the tools of its turn, and what the state has to take in."""
        turn = self._turn(state, request)
        return self._rendered(state, request, turn, self.board.route_now(turn, refused=refused_names(request.messages)))

    async def aprepared(self, state: State, request: R) -> tuple[R, dict[str, Any]]:
        """As `prepared`."""
        turn = self._turn(state, request)
        decision = await self.board.route(turn, refused=refused_names(request.messages))
        return self._rendered(state, request, turn, decision)

    def admitted(self, state: State, call: ToolCall | Mapping[str, Any]) -> ToolId:
        """The tool of a call that passes the gate and fits its schema. Raises ToolNotAvailable, ArgumentsInvalid."""
        meant = wanted(call).call
        return self.board.routing.admit(meant, self._gate(state, meant))

    async def aadmitted(self, state: State, call: ToolCall | Mapping[str, Any]) -> ToolId:
        """As `admitted`."""
        meant = wanted(call).call
        return await self.board.routing.admitted(meant, self._gate(state, meant))

    def _gate(self, state: State, meant: Call) -> Callable[[], ToolId]:
        """Which tool is meant, by the state as it is now."""
        routing = self.board.routing
        turn = turn_of(state.get("messages") or (), self._facts(state))
        turn = replace(turn, scopes=self.board.scopes)
        return lambda: named(meant, active_in(state), routing.allowed(turn))

    def register(self, tools: Sequence[object]) -> None:
        """These are the tools that the agent has itself; others that were registered before are gone."""
        before = self._registered
        now: dict[str, tuple[BaseTool, Tool]] = {}
        for tool in tools:
            if isinstance(tool, BaseTool) and tool.name != CALL_TOOL:
                known = before.get(tool.name)
                now[tool.name] = known if known is not None and known[0] is tool else (tool, board_tool(tool))
        if list(now.items()) != list(before.items()):
            self._registered = now
            self.board.replace_tools([*(tool for _, tool in now.values()), *self._own])

    def recall(self, state: State, tools: Sequence[object]) -> None:
        """Those of ``tools`` that are active but not known: a conversation goes on in another process."""
        active = {tool.name for tool in active_in(state).values() if tool.server == AGENT} - self._registered.keys()
        missing = [tool for tool in tools if isinstance(tool, BaseTool) and tool.name in active]
        if missing:
            self.register([*(tool for tool, _ in self._registered.values()), *missing])

    def runnable(self, tool: ToolId, name: str) -> BaseTool:
        """What LangChain calls: the registered tool, or one that calls the board's."""
        registered = self._registered.get(tool.name) if tool.server == AGENT else None
        if registered is not None:
            own, _ = registered
            return own if own.name == name else own.model_copy(update={"name": name})
        known = self.board.routing.catalog[tool]
        made = self._shown.get((tool, name))
        if made is None or made[0] is not known:
            made = self._shown[tool, name] = (known, langchain_tool(known, name, self.board))
        return made[1]

    def _turn(self, state: State, request: Request | ModelRequest[Any]) -> Turn:
        self.register(request.tools)
        return turn_of(request.messages, self._facts({**state, "messages": request.messages}))

    def _rendered(self, state: State, request: R, turn: Turn, decision: Decision) -> tuple[R, dict[str, Any]]:
        catalog = self.board.routing.catalog
        decision = kept(forced(decision, catalog, request.tool_choice), catalog, request.messages)
        hosted = [tool for tool in request.tools if isinstance(tool, dict)]
        pool = self.board.routing.pool(replace(turn, scopes=self.board.scopes))
        changes: dict[str, Any] = {
            "system_message": rendering.with_summaries(request.system_message, pool, self.rendering)
        }
        update: dict[str, Any] = {ACTIVE: {decision.name_of(tool): list(tool) for tool in decision.active}}
        if self.rendering == "native":
            offered = [self.runnable(tool, decision.name_of(tool)) for tool in decision.active]
            changes["tools"] = [*offered, *hosted]
            if not changes["tools"]:
                changes["tool_choice"] = None
        else:
            texts = texts_in(state)
            added = self._added(decision, texts, request.messages)
            changes["tools"] = [rendering.call_tool(), *hosted]
            changes["messages"] = rendering.with_texts(request.messages, added | texts)
            update[TEXTS] = added
        return cast("R", request.override(**changes)), update

    def _added(self, decision: Decision, texts: Mapping[str, str], messages: Sequence[AnyMessage]) -> dict[str, str]:
        """The text for the last message, unless it has one: what was sent once is never sent otherwise."""
        last = messages[-1] if messages else None
        if last is None or last.id is None or not rendering.can_carry(last) or last.id in texts:
            return {}
        text = rendering.shown(decision, texts, messages)
        return {last.id: text} if text else {}
