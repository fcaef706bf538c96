"""The tools that a conversation makes likely: they join the list of a `dynamic` session before a search finds them.

what was called, with which words ─┐
what was read                      ├─► one text ─► ranking ─► likely ones ─► room and budget ─► list_changed
what was searched for              ┘

A push only adds: what was offered before stays. Only sessions of the handshake era have pushes, because a list of
revision 2026-07-28 must not change as a side effect of other requests (MCP 2026-07-28, tools).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pegboard.errors import PegboardError
from pegboard.events import ToolsOffered
from pegboard.gateways.mcp.gateway import session_changes
from pegboard.gateways.mcp.gateway.call_audit import session_hash
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.caller_view import CallerView
from pegboard.gateways.mcp.gateway.notifications import Announcer
from pegboard.model import Candidate, Decision, JsonObject, Session, ToolId
from pegboard.protocols import Clock, EventSink
from pegboard.retrieval.search_index import SOME

LOGGER = logging.getLogger(__name__)

PUSHED = 3
"""Tools that a push adds at most."""
MOST_PUSHED = 12
"""Tools that pushes add to one conversation at most: each push costs the client its prompt cache."""
LOOKED_AT = 20
"""Candidates among which likely tools are looked for."""
MOST_CONVERSATIONS = 2_000
MOST_TEXTS = 4
"""Texts of a conversation that are matched, the latest ones."""
MOST_CHARACTERS = 300
SHORTEST_WORD = 3
"""Characters of a value that can say what a conversation is about."""


@dataclass(slots=True)
class Conversation:
    """What was said of late, and what was called. ``pushed`` counts the tools that joined the list."""

    texts: deque[str] = field(default_factory=lambda: deque(maxlen=MOST_TEXTS))
    called: OrderedDict[ToolId, None] = field(default_factory=OrderedDict)
    pushed: int = 0
    changed: bool = False

    def say(self, text: str) -> None:
        text = " ".join(text.split())[:MOST_CHARACTERS]
        if text and text not in self.texts:
            self.texts.append(text)
            self.changed = True

    @property
    def text(self) -> str:
        """One text, the latest words first; each part is a clause of its own for the ranking."""
        return ". ".join(reversed(self.texts))


class LikelyTools:
    """Kept in memory by the process that serves the session: another process begins with an empty conversation."""

    def __init__(self, view: CallerView, announcer: Announcer, *, events: EventSink, clock: Clock) -> None:
        self._view = view
        self._announcer = announcer
        self._events, self._clock = events, clock
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._at_work: dict[str, asyncio.Task[None]] = {}

    def called(self, tool: ToolId, arguments: JsonObject, caller: Caller) -> None:
        """A tool was called. A further call of the same tool says nothing new."""
        conversation = self._conversation(caller)
        if conversation is None or tool in conversation.called:
            return
        conversation.called[tool] = None
        conversation.say(" ".join([tool.name, *_words(arguments)]))
        self._begin(caller, conversation)

    def read(self, uri: str, caller: Caller) -> None:
        """A resource was read."""
        self._heard(uri, caller)

    def searched(self, query: str, caller: Caller, *, missed: bool) -> None:
        """A search was answered. What it found is on the list already; what it ``missed`` may be near."""
        self._heard(query, caller, act=missed)

    def forget(self, session: str) -> None:
        self._conversations.pop(session, None)
        if (task := self._at_work.pop(session, None)) is not None:
            task.cancel()

    def close(self) -> None:
        for session in list(self._at_work):
            self.forget(session)

    async def settled(self) -> None:
        """Wait for the pushes in progress."""
        await asyncio.gather(*self._at_work.values(), return_exceptions=True)

    def _heard(self, text: str, caller: Caller, *, act: bool = True) -> None:
        conversation = self._conversation(caller)
        if conversation is not None:
            conversation.say(text)
            if act:
                self._begin(caller, conversation)

    def _conversation(self, caller: Caller) -> Conversation | None:
        """The caller's conversation; None for a caller whose list no push may change."""
        if caller.session is None or caller.modern or not self._view.pushes:
            return None
        found = self._conversations.setdefault(caller.session, Conversation())
        self._conversations.move_to_end(caller.session)
        while len(self._conversations) > MOST_CONVERSATIONS:
            self.forget(next(iter(self._conversations)))
        return found

    def _begin(self, caller: Caller, conversation: Conversation) -> None:
        """Rank in the background, once at a time for a session; what is said meanwhile is ranked after it."""
        session = caller.session
        if session is None or not conversation.changed or session in self._at_work:
            return
        if conversation.pushed < MOST_PUSHED:
            self._at_work[session] = asyncio.create_task(self._work(caller, session, conversation))

    async def _work(self, caller: Caller, session: str, conversation: Conversation) -> None:
        try:
            while conversation.changed and conversation.pushed < MOST_PUSHED:
                conversation.changed = False
                await self._push(caller, session, conversation)
        except PegboardError as error:
            LOGGER.debug("No tools are pushed: %s", error)
        except Exception:
            LOGGER.exception("No tools are pushed")
        finally:
            self._at_work.pop(session, None)

    async def _push(self, caller: Caller, key: str, conversation: Conversation) -> None:
        view = self._view
        session = await view.book.get(key)
        if view.exposure(caller, session) != "dynamic":
            return
        await view.board.index_words()
        async with view.searches.place(caller):
            decision = await view.board.search(view.turn(conversation.text, session, caller), shown=LOOKED_AT)
        session = await view.book.get(key)
        likely = self._fitting(caller, session, likely_tools(decision, conversation.called))
        likely = likely[: min(PUSHED, MOST_PUSHED - conversation.pushed)]
        if not likely:
            return
        now = await view.book.update(key, session_changes.offer(likely, cap=view.room(caller)))
        pushed = [tool for tool in now.enabled if tool not in session.enabled]
        conversation.pushed += len(pushed)
        if pushed:
            self._events.emit(
                ToolsOffered(
                    at=self._clock.time(),
                    way="push",
                    offered=len(pushed),
                    decision=decision.turn_id,
                    key=caller.name,
                    client=caller.kind.name,
                    conversation=session_hash(key),
                    at_hand=view.at_hand(pushed, caller, session),
                )
            )
        if set(now.enabled) != set(session.enabled) and await self._announcer.tell(key):
            await view.book.update(key, session_changes.noticed)

    def _fitting(self, caller: Caller, session: Session, likely: Sequence[ToolId]) -> list[ToolId]:
        """Of these, the ones that the list does not have and has room for, next to all that it has."""
        view, names = self._view, self._view.names(caller)
        kept: list[ToolId] = []
        for tool in likely:
            if tool in session.enabled or view.is_listed(tool, caller, session) or tool not in names.of:
                continue
            with_it = replace(session, enabled=(*reversed([*kept, tool]), *session.enabled))
            if len(with_it.enabled) > view.room(caller):
                break
            if any(each["name"] == names.of[tool] for each in view.listed(caller, with_it)[1]):
                kept.append(tool)
            if len(kept) == PUSHED:
                break
        return kept


def likely_tools(decision: Decision, called: Mapping[ToolId, None]) -> list[ToolId]:
    """The likely tools of a decision, best first: those with some probability, and the best of servers in use.

    Scores that are no probabilities say nothing of themselves; there, only tools of servers in use are likely.
    """
    servers = {tool.server for tool in called}
    calibrated = decision.scale == "probability" and not decision.by_rank

    def is_likely(each: Candidate) -> bool:
        return each.tool.server in servers or (calibrated and each.score >= SOME)

    best = sorted(decision.candidates, key=lambda each: -each.score)[:LOOKED_AT]
    return [each.tool for each in best if each.tool not in called and is_likely(each)]


def _words(value: object) -> Iterator[str]:
    """The strings of arguments, at any depth, that may say what a call is about."""
    if isinstance(value, str):
        if len(value) >= SHORTEST_WORD and not value.isdigit():
            yield value[:MOST_CHARACTERS]
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _words(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _words(each)
