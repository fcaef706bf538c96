"""The way back of one request: which calls are the gateway's to answer, what it answers, and what is asked next."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from pegboard.errors import PegboardError
from pegboard.gateways.llm.codec import Codec, Request
from pegboard.gateways.llm.obedience import may_be_picked
from pegboard.gateways.llm.way_back import search
from pegboard.gateways.llm.way_back.edits import query_of
from pegboard.gateways.llm.way_back.wire import Asked, Document, Exchange, SearchTool, WireFormat
from pegboard.model import Tool
from pegboard.settings.llm import HiddenCall

LOGGER = logging.getLogger(__name__)

MOST_ROUNDS = 3
"""Times that a request is asked again, the last of them without the search tool."""
Find = Callable[[str, Collection[int]], Awaitable[dict[int, Tool]]]
"""The places of tools for a query, best first, of those that are not among these."""


@dataclass(slots=True, kw_only=True)
class Way:
    """One request on its way there and back. ``tool`` is None where no search is offered.

    ``kept`` are the places of the tools that are with the model now, ``open`` those that may come back, ``found`` the
    names of those that did. ``rounds`` are those with the model each time that it was asked again. ``tokens`` are those
    of the search tool.
    """

    format: WireFormat
    codec: Codec
    request: Request
    kept: frozenset[int]
    open: frozenset[int]
    hidden_call: HiddenCall
    tool: SearchTool | None
    find: Find
    tokens: int = 0
    exchanges: list[Exchange] = field(default_factory=list)
    searches: int = 0
    found: list[str] = field(default_factory=list)
    rounds: list[frozenset[int]] = field(default_factory=list)

    def body(self) -> bytes:
        """The request as it goes out now."""
        body = self.codec.rewrite(self.request, sorted(self.kept))
        if self.tool is not None and self._may_search():
            body = self.format.offer(body, self.tool)
        return self.format.continued(body, self.exchanges) if self.exchanges else body

    def held(self, name: str) -> bool:
        """Whether a call of this tool is not for the client as long as it stands alone."""
        return self.is_search(name) or (self.hidden_call != "pass" and self.is_hidden(name))

    def hides(self, name: str) -> bool:
        """Whether it is not for the client even where nothing is asked again.

        A hidden tool is one that the caller offered: it goes to the caller, unless the guard is to answer for it.
        """
        return self.is_search(name) or (self.hidden_call == "guard" and self.is_hidden(name))

    def is_search(self, name: str) -> bool:
        return self.tool is not None and name == self.tool.name

    def is_hidden(self, name: str) -> bool:
        """Whether the model may call it as the request has it, and was not told of it."""
        allowed = (self.request.tools[place].name for place in may_be_picked(self.request))
        return name not in self._shown() and name in allowed

    def goes_on(self, answer: Document) -> bool:
        """Whether the answer is for the gateway: it calls what is held, and nothing that is the client's to call."""
        calls = self.format.calls(answer)
        may = bool(calls) and len(self.exchanges) < MOST_ROUNDS and self.format.waits(answer)
        return may and all(self.held(call.name) for call in calls)

    async def answer(self, answer: Document) -> None:
        """Answer its calls; the next `body` has the results, and what was found."""
        before = self.kept
        results = [(call, await self._result(call)) for call in self.format.calls(answer)]
        self.exchanges.append(Exchange(answer=answer, results=results))
        if not self.kept and len(self.exchanges) == MOST_ROUNDS:
            self.kept = frozenset(range(len(self.request.tools)))  # a history with calls needs tools (P14)
        self.rounds.append(self.kept)
        self.found += [self.request.tools[place].name for place in sorted(self.kept - before)]

    async def _result(self, call: Asked) -> str:
        if self.is_search(call.name):
            return await self._searched(query_of(call.arguments))
        back = {place for place in self.open if self.request.tools[place].name == call.name}
        if self.hidden_call == "guard" or not back:
            return search.refused(call.name, sorted(self._shown()), search=self.tool.name if self.tool else "")
        self.kept |= back
        return search.shown_now(call.name)

    async def _searched(self, query: str) -> str:
        self.searches += 1
        if not query:
            return search.nothing_asked()
        try:
            tools = await self.find(query, self.kept)
        except (PegboardError, TimeoutError) as error:
            return search.not_found_now(type(error).__name__)
        except Exception as error:
            LOGGER.exception("A search for tools failed")
            return search.not_found_now(type(error).__name__)
        self.kept |= tools.keys()
        return search.found(tools.values())

    def _may_search(self) -> bool:
        """Not the last time; and where something has to be called, a search was that once, and then is no more."""
        asked = len(self.exchanges)
        return asked < MOST_ROUNDS and not (asked and self.request.choice.mode == "required")

    def _shown(self) -> frozenset[str]:
        return frozenset(self.request.tools[place].name for place in self.kept)
