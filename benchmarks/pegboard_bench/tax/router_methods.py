"""Methods that choose tools from the user's message before the model sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegboard.catalog import Catalog, canonical_text, compact_json
from pegboard.gateways.llm.tool_search import tool as search
from pegboard.model import AgentState, Tool, ToolId, Turn
from pegboard_bench.tax.boards import Place, board, tools_of
from pegboard_bench.tax.request import Conversation, Sent
from pegboard_bench.tax.tasks import Step, Task
from pegboard_bench.tax.testbeds import Testbed


class Routed:
    """A profile of the engine: summaries in the prefix, the chosen definitions.

    ``late`` puts those behind the conversation (Tool Attention §5.6); otherwise they are in `tools`.
    ``all_where_none`` sends every tool where none is chosen, as the LLM gateway does (`when_none`).
    """

    def __init__(
        self,
        place: Place,
        *,
        late: bool = False,
        all_where_none: bool = False,
        weights: Path | None = None,
        rules: bool = True,
        **settings: Any,
    ):
        self._place = place
        self._late = late
        self._all_where_none = all_where_none
        self._weights = weights
        self._rules = rules
        self._settings = settings
        self._known: dict[tuple[str, AgentState], Sent] = {}

    async def begin(self, testbed: Testbed) -> None:
        self._known.clear()
        self.board = await board(testbed, self._place, weights=self._weights, rules=self._rules, **self._settings)
        self.catalog = self.board.catalog

    async def play(self, task: Task) -> Sequence[Sent]:
        talk, found = Conversation(), []
        for step in task.steps:
            found.append(await self._send(talk.turn(step)))
            talk.called(step)
        return found

    async def _send(self, turn: Turn) -> Sent:
        """The same for the same user messages and state: what a tool said is no part of the query."""
        said = "\0".join(message.text for message in turn.messages if message.role == "user")
        key = (said, turn.state)
        if key not in self._known:
            decision = await self.board.route(turn)
            chosen = frozenset(decision.active)
            if self._all_where_none and not chosen:
                chosen = decision.reachable
            tools = tools_of(self.catalog, chosen)
            self._known[key] = Sent(
                tools=() if self._late else tools,
                late=tools if self._late else (),
                texts=(decision.phase1,) if self._pooled else (),
                reached=chosen,
            )
        return self._known[key]

    @property
    def _pooled(self) -> bool:
        """The gateway article filters and has no summaries."""
        return self._settings.get("profile") != "semantic"


class Whole:
    """B1: every definition with every request."""

    async def begin(self, testbed: Testbed) -> None:
        tools = testbed.catalog.tools
        self._sent = Sent(tools=tools, reached=frozenset(tool.id for tool in tools))

    async def play(self, task: Task) -> Sequence[Sent]:
        return [self._sent] * len(task.steps)


class Pruned:
    """B2: 30 tools, chosen once.

    The curator has seen 30 tasks of another draw and keeps what was called most often there, then, in the order of the
    catalog, one tool of each server after the other.
    """

    SIZE = 30
    SEEN = 30
    SEED = -1

    async def begin(self, testbed: Testbed) -> None:
        catalog, counts = testbed.catalog, dict[ToolId, int]()
        for task in testbed.tasks(self.SEED, self.SEEN):
            for step in task.steps:
                tool = max(step.serves)
                counts[tool] = counts.get(tool, 0) + 1
        by_use = sorted(counts, key=lambda tool: (-counts[tool], catalog.position[tool]))
        kept = tuple(dict.fromkeys([*by_use, *_in_turns(catalog)]))[: self.SIZE]
        self._sent = Sent(tools=tools_of(catalog, kept), reached=frozenset(kept))

    async def play(self, task: Task) -> Sequence[Sent]:
        return [self._sent] * len(task.steps)


class WayBack(Routed):
    """The LLM gateway with its way back: no summaries, one more tool, `search_tools`, that names what is not listed.

    The model searches where the tool of a step is not there; what it finds, and what it called, stays (P13).
    """

    async def play(self, task: Task) -> Sequence[Sent]:
        talk, found, kept = Conversation(), list[Sent](), set[ToolId]()
        for step in task.steps:
            turn = talk.turn(step)
            reached = set((await self._send(turn)).reached) | kept
            asked: tuple[tuple[str, ...], ...] = ()
            if not step.serves & reached:
                new = await self._search(step, reached)
                asked = ((compact_json({"query": step.ask}), search.found(tools_of(self.catalog, tuple(new)))),)
                reached |= new
                kept |= new
            kept |= step.serves & reached
            tools = (*tools_of(self.catalog, tuple(reached)), self._search_tool(reached))
            found.append(Sent(tools=tools, asked=asked, reached=frozenset(reached)))
            talk.called(step)
        return found

    async def _search(self, step: Step, listed: set[ToolId]) -> set[ToolId]:
        ranked = await self.board.rank(Turn.ask(step.ask, state=step.state))
        return set([each.tool for each in ranked if each.tool not in listed][: search.FOUND])

    def _search_tool(self, listed: set[ToolId]) -> Tool:
        others = [tool for tool in self.catalog.tools if tool.id not in listed]
        pool = search.pool_of(others, self.catalog.counter, self.board.profile.pool)
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return Tool(id=ToolId("pegboard", search.NAME), description=search.description(pool), input_schema=schema)


def _in_turns(catalog: Catalog) -> list[ToolId]:
    places = {tool.id: place for server in catalog.servers for place, tool in enumerate(catalog.of_server(server))}
    return sorted(places, key=lambda tool: (places[tool], catalog.position[tool]))


class Simple:
    """B3: the ten nearest by cosine of the message and the whole definition, and nothing else."""

    K = 10

    def __init__(self, place: Place, *, weights: Path | None = None) -> None:
        self._place = place
        self._weights = weights

    async def begin(self, testbed: Testbed) -> None:
        groups = [
            (server, [_by_definition(tool) for tool in testbed.catalog.of_server(name)])
            for name, server in testbed.catalog.servers.items()
        ]
        whole = Testbed(name=testbed.name, catalog=Catalog.build(groups), asks=testbed.asks, same=testbed.same)
        self._board = await board(
            whole, self._place, weights=self._weights, rules=False, profile="attention", k=self.K, threshold=-1.0
        )
        self._catalog = testbed.catalog

    async def play(self, task: Task) -> Sequence[Sent]:
        talk, found = Conversation(), []
        for step in task.steps:
            decision = await self._board.route(talk.turn(step, AgentState()))
            active = frozenset(decision.active)
            found.append(Sent(tools=tools_of(self._catalog, active), reached=active))
        return found


def _by_definition(tool: Tool) -> Tool:
    """The tool with its whole definition as what is embedded of it."""
    return replace(tool, summary=canonical_text(tool))
