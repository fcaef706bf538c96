"""What the paths of the HTTP API do, each a function of a checked body and the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from pegboard.activity_entries import conversation_mark
from pegboard.board_search import found_tools
from pegboard.errors import ConfigError, PegboardError, ToolNotAvailable
from pegboard.events import OutcomeReported, RouteAnswered
from pegboard.gateways.http_api.api_messages import (
    OutcomeRequest,
    Relevant,
    RouteAnswer,
    RouteRequest,
    SearchAnswer,
    SearchRequest,
    TokenCounts,
)
from pegboard.gateways.http_api.request_boards import RequestBoards
from pegboard.gateways.http_api.told_turns import ToldTurn, ToldTurns
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.gateway.meta_definitions import DEFAULT_LIMIT
from pegboard.gateways.mcp.gateway.meta_results import entry
from pegboard.gateways.mcp.transport.auth import Holder, check_scope
from pegboard.gateways.stored_names import api_conversation
from pegboard.habits import habits_of
from pegboard.library.turns import answered, remembered, turn_of
from pegboard.model import AgentState, Decision, JsonObject, Outcome, Session, Tool, ToolId, Turn
from pegboard.routing.decisions import widened
from pegboard.routing_board import RoutingBoard
from pegboard.wire_formats import wire_tool, wire_tools

ABOUT_CALLS = frozenset({"call", "calls"})
"""Parts of a search's answer that say how a model calls what was found, which programs know."""
NOTHING_FITS = "None of the tools seems to do that: describe in other words what it has to do, or use its name."


class BodyInvalid(PegboardError):  # noqa: N818
    """A body that cannot be read, or contradicts itself."""

    code = "invalid_request"
    http_status = 400


class UnknownTurn(PegboardError):  # noqa: N818
    code = "unknown_turn"
    http_status = 404

    def __init__(self, turn: str) -> None:
        super().__init__(
            f"There is no turn {turn!r}.",
            remedy="Report an outcome with the `turn` that offered its tool, to the process that answered it.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTurn:
    """A decision, the board that made it, and the name by which the model calls each tool."""

    decision: Decision
    board: RoutingBoard
    names: Mapping[ToolId, str]
    own: bool


class Endpoints:
    """The three paths over a host's gateways, and over the tools that requests bring along."""

    def __init__(self, host: Host, boards: RequestBoards) -> None:
        self._host = host
        self._boards = boards
        self._told = ToldTurns()

    async def route(self, asked: RouteRequest, holder: Holder | None) -> RouteAnswer:
        """Raises BodyInvalid, CatalogError, and NoToolset or InsufficientScope for the toolset."""
        turn = await self._turn(asked, holder)
        offer = await self._offer(asked, turn, holder)
        decision = widened(offer.decision, offer.board.catalog, asked.refused)
        told = ToldTurn(habits=decision.habits, query=decision.query, names=offer.names, own=offer.own)
        self._told.remember(_identity(holder), turn.id, told)
        answer = _answer(asked, offer, decision)
        self._tell(asked, holder, decision, answer)
        return answer

    async def search(self, asked: SearchRequest, holder: Holder | None) -> SearchAnswer:
        """Raises BodyInvalid, CatalogError, and NoToolset or InsufficientScope for the toolset."""
        if asked.tools is not None:
            return await self._searched_own(asked, asked.tools, holder)
        given = asked.model_dump(include={"query", "limit", "kind", "server", "category"}, exclude_none=True)
        found = await self._gateway(asked.toolset, holder).search(given, Caller(holder=holder))
        return SearchAnswer(**{name: value for name, value in found.items() if name not in ABOUT_CALLS})

    async def outcome(self, said: OutcomeRequest, holder: Holder | None) -> None:
        """Raises UnknownTurn, and ToolNotAvailable for a tool that the caller may not use."""
        told = self._told.of(_identity(holder), said.turn)
        if told is None and said.turn is not None:
            raise UnknownTurn(said.turn)
        tool = await self._reported(said, told, holder)
        failure = said.failure or "tool"
        ended = Outcome(
            tool=tool, success=said.success, latency_ms=said.latency_ms, failure=None if said.success else failure
        )
        if told is None or not told.own:  # own tools of two callers may share a name
            self._host.count(ended)
        self._host.parts.events.emit(
            OutcomeReported(
                at=self._host.parts.clock.time(), decision=said.turn or "", tool=str(tool), success=said.success
            )
        )
        if not said.success:
            return
        learner = self._host.parts.learner
        if told is not None and learner is not None:
            learner.called(told.habits, told.query, [tool])
        if said.session is not None:
            session = Session(id=api_conversation(holder, said.session))
            await answered(self._host.parts.sessions, session, tool)

    def _tell(self, asked: RouteRequest, holder: Holder | None, decision: Decision, answer: RouteAnswer) -> None:
        self._host.parts.events.emit(
            RouteAnswered(
                at=self._host.parts.clock.time(),
                decision=decision.turn_id,
                key="" if holder is None else holder.name,
                conversation=conversation_mark(asked.session and api_conversation(holder, asked.session)),
                tools=answer.reachable,
                offered=len(answer.active),
                tokens_before=answer.tokens.all,
                tokens_after=answer.tokens.active,
            )
        )

    async def _turn(self, asked: RouteRequest, holder: Holder | None) -> Turn:
        said: Any = asked.query if asked.messages is None else asked.messages
        try:
            turn = turn_of(said)
        except ConfigError as error:
            raise BodyInvalid(error.message, remedy=error.remedy) from error
        turn = replace(
            turn,
            id=uuid4().hex,
            state=AgentState(milestones=frozenset(asked.milestones)),
            max_price=asked.max_price,
            deadline=asked.deadline,
        )
        if asked.session is not None:
            turn = await remembered(self._host.parts.sessions, turn, api_conversation(holder, asked.session))
        return turn

    async def _offer(self, asked: RouteRequest, turn: Turn, holder: Holder | None) -> OfferedTurn:
        if asked.tools is None:
            gateway = self._gateway(asked.toolset, holder)
            decision, board, names = await gateway.route(turn, Caller(holder=holder))
            return OfferedTurn(decision=decision, board=board, names=names, own=False)
        brought = await self._boards.of(asked.tools)
        await brought.routing.index_words()
        async with self._host.searches.place(Caller(holder=holder)):
            decision = await brought.routing.route(self._own_turn(turn, holder))
        return OfferedTurn(decision=decision, board=brought.routing, names=brought.names, own=True)

    async def _searched_own(
        self, asked: SearchRequest, tools: list[dict[str, Any]], holder: Holder | None
    ) -> SearchAnswer:
        if asked.kind not in (None, "tool") or asked.server or asked.category:
            raise BodyInvalid(
                "Own tools have no kind, server or category.", remedy="Leave these out, or leave `tools` out."
            )
        board = await self._boards.of(tools)
        index = await board.search_index()
        await board.routing.index_words()
        async with self._host.searches.place(Caller(holder=holder)):
            found = await found_tools(
                board.routing, index, lambda text: self._own_turn(Turn.ask(text), holder), asked.query
            )
        most = asked.limit or board.routing.profile.results or DEFAULT_LIMIT
        catalog = board.routing.catalog

        def shown(candidates: Any) -> list[dict[str, Any]]:
            best = candidates[:most]
            return [entry(catalog[each.tool], each.tool.name, None, found.certainty(each)) for each in best]

        answer: dict[str, Any] = {"tools": shown(found.tools)}
        if not found.tools:
            answer |= {"why": NOTHING_FITS, "chance": round(found.chance, 2), "nearest": shown(found.nearest)}
            answer["categories"] = list(found.categories(catalog))
        if found.query != asked.query:
            answer["searched_for"] = found.query
        return SearchAnswer(**answer)

    def _own_turn(self, turn: Turn, holder: Holder | None) -> Turn:
        """A turn over the caller's own tools: its rights are its own, but for rules that name a scope."""
        scopes = frozenset(self._host.settings.scopes) if holder is None else holder.scopes
        learns = self._host.parts.learner is not None
        habits = habits_of("" if holder is None else holder.name, "api") if learns else ""
        return replace(turn, scopes=scopes, state=replace(turn.state, auth=scopes), habits=habits)

    def _gateway(self, toolset: str, holder: Holder | None) -> Gateway:
        gateway = self._host.gateway(toolset, self._host.user_of(holder))
        check_scope(holder, self._host.scope_of(toolset))
        return gateway

    async def _reported(self, said: OutcomeRequest, told: ToldTurn | None, holder: Holder | None) -> ToolId:
        """The tool of a report, which the turn offered or the caller may use. Raises ToolNotAvailable."""
        if told is None:
            return await self._gateway(said.toolset, holder).tool_named(said.tool, Caller(holder=holder))
        tool = told.tool(said.tool)
        if tool is None:
            raise ToolNotAvailable(said.tool, [], remedy="Report it with the turn that offered it.")
        return tool


def _answer(asked: RouteRequest, offer: OfferedTurn, decision: Decision) -> RouteAnswer:
    """What the decision is worth now: tools that have gone since are left out."""
    catalog, names = offer.board.catalog, offer.names
    active = [catalog[tool] for tool in decision.active if tool in catalog and tool in names]
    places = [catalog.position[tool] for tool in decision.reachable if tool in catalog]
    return RouteAnswer(
        turn=decision.turn_id,
        active=[names[tool.id] for tool in active],
        tools=_definitions(asked, offer, active),
        candidates=[
            Relevant(name=names[each.tool], score=round(each.score, 6))
            for each in sorted(decision.candidates, key=lambda each: each.rank)
            if each.tool in catalog and each.tool in names
        ],
        reachable=len(places),
        profile=decision.profile,
        scale=decision.scale,
        ranked_by=decision.ranked_by,
        meets_target=decision.meets_target,
        tokens=TokenCounts(
            active=decision.phase2_tokens,
            all=sum(catalog.token_counts[place] for place in places),
        ),
    )


def _definitions(asked: RouteRequest, offer: OfferedTurn, active: list[Tool]) -> list[dict[str, Any]]:
    names, form = offer.names, asked.format
    if form == "none":
        return []
    if form is None:
        return [_renamed(tool, names[tool.id]) for tool in active]
    return wire_tools(form, [wire_tool(form, names[tool.id], tool.description, tool.input_schema) for tool in active])


def _renamed(tool: Tool, name: str) -> dict[str, Any]:
    """The definition as it came, under its name on the wire."""
    given: JsonObject = tool.definition
    return dict(given) if name == tool.name else {**given, "name": name}


def _identity(holder: Holder | None) -> tuple[str, str] | None:
    return None if holder is None else holder.identity
