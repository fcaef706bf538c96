"""LangChain's hooks around Tool Attention: with three lines, an agent with 500 tools behaves as if it had five."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.types import Command

from pegboard.errors import PegboardError
from pegboard.gateways.langchain import model_request as renderings
from pegboard.gateways.langchain.attention import AdmittedCall, State, ToolAttention
from pegboard.gateways.langchain.call_gate import refusal
from pegboard.gateways.langchain.messages import ToolAttentionState, asked_in, facts_of
from pegboard.gateways.langchain.model_request import Rendering
from pegboard.gateways.langchain.shaped_messages import Answer, ShapedMessages
from pegboard.library.board_results import READ_RESULT
from pegboard.library.execution import is_control_flow
from pegboard.library.given_tools import AGENT
from pegboard.model import AgentState, Outcome, ToolId


class ToolAttentionMiddleware(AgentMiddleware[ToolAttentionState, Any, Any]):
    """Shows the model the tools of its turn and blocks calls of the tools that were left out (Tool Attention). A call
    of a tool that another middleware added later goes to that one.

    It selects among the agent's tools and ``tools``: functions, schemas in any provider's form, pairs of a schema and a
    callable. ``config`` names MCP servers, ``url`` another Pegboard; ``options`` are those of `pegboard.Board`, such as
    ``profile``, ``k``, ``rules``, ``always_available``, ``encoder``, ``query="observation"`` to select again after
    each tool result, or ``results="shaped"`` for results in fewer tokens. ``rendering`` is `native`, or `text` for a
    prompt whose beginning never changes. ``facts`` reads the facts for preconditions from the agent's state.
    ``way_back`` offers the model a search for the tools that a request does not have; what it finds stays with the
    conversation. ``cache_aware`` keeps tools, or sends all, where the provider's prompt cache makes that cheaper.

    >>> from langchain.agents import create_agent
    >>> from langchain_core.language_models.fake_chat_models import FakeListChatModel
    >>> middleware = ToolAttentionMiddleware([{"name": "tide", "description": "When the tide comes"}], k=5)
    >>> agent = create_agent(FakeListChatModel(responses=["hello"]), middleware=[middleware])
    """

    state_schema = ToolAttentionState

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
        super().__init__()
        self.attention = ToolAttention(
            tools, rendering=rendering, facts=facts, way_back=way_back, cache_aware=cache_aware, **options
        )
        self.tools = [renderings.call_tool()] if rendering == "text" else []

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Call the model with the tools of the turn."""
        changed, update = self.attention.prepared(request.state, request)
        response = self.attention.exact(_whole(handler(changed)), update)
        return ExtendedModelResponse(model_response=response, command=Command(update=update))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """The async version of `wrap_model_call`."""
        changed, update = await self.attention.aprepared(request.state, request)
        response = self.attention.exact(_whole(await handler(changed)), update)
        return ExtendedModelResponse(model_response=response, command=Command(update=update))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Run a call that passes the gate, with arguments that fit; otherwise tell the model why not.
        A search for tools is answered here. Arguments that LangChain refuses are refused in its words."""
        if self.attention.is_search(request.state, request.tool_call):
            return self.attention.searched(request.state, request.tool_call, _at_hand(request))
        try:
            admitted = self.attention.admitted(request.state, request.tool_call, _at_hand(request), run=True)
        except PegboardError as error:
            if request.tool is not None or self.attention.selects(request.state, request.tool_call, _at_hand(request)):
                return refusal(request.tool_call, error)
            other = handler(request)
            return refusal(request.tool_call, error) if _unknown(request, other) else other
        if not admitted.fits:
            return _under(request.tool_call, admitted, handler(_for(request, admitted)))
        started = time.monotonic()
        try:
            answer = handler(_for(request, admitted))
        except Exception as error:
            self._observe(admitted.tool, started, error)
            raise
        self._observe(admitted.tool, started, answer)
        return _under(request.tool_call, admitted, self._shaper(request, admitted).of(answer))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """The async version of `wrap_tool_call`."""
        if self.attention.is_search(request.state, request.tool_call):
            return await self.attention.asearched(request.state, request.tool_call, _at_hand(request))
        try:
            admitted = await self.attention.aadmitted(request.state, request.tool_call, _at_hand(request), run=True)
        except PegboardError as error:
            if request.tool is not None or await self.attention.aselects(
                request.state, request.tool_call, _at_hand(request)
            ):
                return refusal(request.tool_call, error)
            other = await handler(request)
            return refusal(request.tool_call, error) if _unknown(request, other) else other
        if not admitted.fits:
            return _under(request.tool_call, admitted, await handler(_for(request, admitted)))
        started = time.monotonic()
        try:
            answer = await handler(_for(request, admitted))
        except Exception as error:
            self._observe(admitted.tool, started, error)
            raise
        self._observe(admitted.tool, started, answer)
        return _under(request.tool_call, admitted, await self._shaper(request, admitted).aof(answer))

    def close(self) -> None:
        """Stop the servers that were started."""
        self.attention.board.close()

    def _shaper(self, request: ToolCallRequest, admitted: AdmittedCall) -> ShapedMessages:
        return ShapedMessages(
            results=self.attention.board.results,
            tool=admitted.tool,
            config=getattr(request.runtime, "config", None),
            whole=admitted.tool == READ_RESULT or admitted.runnable.return_direct,
            asked=asked_in(request.state.get("messages") or (), request.tool_call),
        )

    def _observe(self, tool: ToolId, started: float, answer: Answer | Exception) -> None:
        """Record the outcome of a registered tool; the board records its own tools and knows whose failure it was.
        A call that was interrupted or cancelled has none."""
        if tool.server == AGENT and not (isinstance(answer, Exception) and is_control_flow(answer)):
            failed = isinstance(answer, Exception) or (isinstance(answer, ToolMessage) and answer.status == "error")
            latency = (time.monotonic() - started) * 1000
            outcome = Outcome(tool=tool, success=not failed, latency_ms=latency, failure="tool" if failed else None)
            self.attention.board.observe(outcome)


def _unknown(request: ToolCallRequest, answer: Answer) -> bool:
    """Whether no middleware had the tool either: LangGraph's answer would name every tool of the agent."""
    said = f"Error: {request.tool_call['name']} is not a valid tool"
    return request.tool is None and isinstance(answer, ToolMessage) and str(answer.content).startswith(said)


def _at_hand(request: ToolCallRequest) -> list[Any]:
    """The agent's tools at the time of a call: after a restart, this may precede any model call."""
    return [*(getattr(request.runtime, "tools", None) or ()), request.tool]


def _for(request: ToolCallRequest, admitted: AdmittedCall) -> ToolCallRequest:
    return request.override(tool_call=admitted.as_call(request.tool_call), tool=admitted.runnable)


def _whole(response: ModelResponse[Any] | AIMessage) -> ModelResponse[Any]:
    return ModelResponse(result=[response]) if isinstance(response, AIMessage) else response


def _under(asked: ToolCall, admitted: AdmittedCall, answer: Answer) -> Answer:
    """The answer under the name that the model called: providers match the two. An answer under a third name is of a
    tool that a later middleware ran instead, and says so."""
    if isinstance(answer, ToolMessage) and answer.name in (None, admitted.tool.name) and answer.name != asked["name"]:
        return answer.model_copy(update={"name": asked["name"]})
    return answer
