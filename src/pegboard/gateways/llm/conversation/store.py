"""What each conversation was last sent with by this process, and what was expected of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from sys import intern

from pegboard.gateways.llm.conversation.history import ConversationHistory, Stage
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.selection.cache_aware_selection import ConversationState, RelevantTools, named
from pegboard.habits import caller_of
from pegboard.owner_cache import OwnerCache
from pegboard.prompt_cache import CacheAccount, CachePrices, Moment, Turned, rounds_bill
from pegboard.prompt_cache.account import EXCHANGE
from pegboard.protocols import Clock
from pegboard.settings.llm import Way
from pegboard.token_usage import TokenUsage

Places = frozenset[int]
Key = tuple[str, int]
"""The owner in plain text, and a hash of the rest: a hash collision cannot mix two tenants."""
CAPACITY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationThread:
    """The keys under which a conversation is found, the most certain first, and the key under which it is kept.

    A conversation with a name, by Pegboard's header or by the answer that it continues, is identified by that. Any
    other is identified by its system text, its tools and what the user has said so far: two conversations that begin
    alike separate where they differ, and one that resumes from an earlier message finds what was sent there. A
    conversation without any answer is always new.
    """

    owner: str
    kept_under: Key
    found_under: tuple[Key, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A conversation's last request: the names of its tools, a hash of its cacheable prefix, and when it was sent.

    ``requests`` counts the requests; ``way`` is the conversation's way. The others are the fields of `RelevantTools`,
    by the names of tools. ``account`` has the bill of all requests.
    """

    names: tuple[str, ...]
    prefix: int
    at: float
    requests: int
    way: Way | None
    before: tuple[str, ...]
    any: tuple[str, ...]
    called: tuple[str, ...]
    changed: int
    account: CacheAccount
    tail: tuple[str, ...] = ()


class Conversations:
    """The last ``capacity`` conversations with what they were sent with, and when which full sets of tools were last
    sent. The caller with most of them loses its oldest."""

    def __init__(self, clock: Clock, capacity: int = CAPACITY) -> None:
        self._clock = clock
        self._sent = OwnerCache[Key, SentRequest](capacity, clock.monotonic)
        self._whole = OwnerCache[Key, float](capacity, clock.monotonic)

    def known(self, thread: ConversationThread, stage: Stage, request: LlmRequest, system: str) -> ConversationState:
        """What this process knows of a conversation that is at this stage according to its history."""
        now = self._clock.monotonic()
        whole = self._whole.get((thread.owner, _prefix(request, system, range(len(request.tools)))))
        known = ConversationState(stage=stage, whole_idle=None if whole is None else now - whole)
        sent = next((found for key in thread.found_under if (found := self._sent.get(key)) is not None), None)
        if sent is None:
            return known
        held = named(request, frozenset(sent.names))
        return replace(
            known,
            stage=replace(stage, answers=max(stage.answers, sent.requests)),
            held=held,
            idle=now - sent.at if sent.prefix == _prefix(request, system, sorted(held)) else None,
            relevant=RelevantTools(
                before=named(request, frozenset(sent.before)),
                any=named(request, frozenset(sent.any)),
                called=named(request, frozenset(sent.called)),
                changed=sent.changed,
            ),
            way=sent.way,
            account=sent.account,
            tail=tuple(place for name in sent.tail for place in sorted(named(request, (name,)))),
        )

    def sent(
        self,
        thread: ConversationThread,
        known: ConversationState,
        request: LlmRequest,
        system: str,
        places: Sequence[int],
        way: Way | None,
    ) -> None:
        """Record a request that is sent with these tools, in this order; ``known`` already includes what is relevant to
        it and its bill."""
        now, prefix = self._clock.monotonic(), _prefix(request, system, places)
        sent = SentRequest(
            names=_names(request, places),
            prefix=prefix,
            at=now,
            requests=known.stage.answers + 1,
            way=way,
            before=_names(request, known.relevant.before),
            any=_names(request, known.relevant.any),
            called=_names(request, known.relevant.called),
            changed=known.relevant.changed,
            account=known.account,
            tail=_names(request, known.tail),
        )
        caller = caller_of(request.turn.habits) or thread.owner
        self._sent.put(caller, thread.kept_under, sent)
        if len(places) == len(request.tools):
            self._whole.put(caller, (thread.owner, prefix), now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A request that was sent: what is known including it, and the bill that was ``expected`` of it."""

    thread: ConversationThread
    key: str
    system: str
    request: LlmRequest
    known: ConversationState
    way: Way
    moment: Moment
    prices: CachePrices
    expected: float

    def after(self, rounds: Sequence[Places], used: TokenUsage | None) -> ConversationState:
        """The state after the answer. ``rounds`` are the tools of the request, first and in each repetition; ``used``
        is what the provider counted for all of them."""
        extra = rounds_bill(rounds, self.moment, self.prices)
        account = self.known.account.after(extra)
        if used is not None and used.input:
            account = account.corrected(self.expected + extra, billed(used, self.prices))
        relevant = self.known.relevant
        relevant = replace(relevant, changed=relevant.changed + sum(1 for _ in _came(rounds)))
        return replace(self.known, account=account, relevant=relevant)

    def turns(self, rounds: Sequence[Places]) -> Iterator[Turned]:
        """The turns that the rounds represent: each round that added tools counts as a turn that needed missing
        tools."""
        for new in _came(rounds):
            tokens = sum(self.moment.tokens[place] for place in new)
            wanted = sum(self.moment.tokens[place] for place in self.moment.relevant)
            yield Turned(first=False, ahead=EXCHANGE, wanted=wanted + tokens, added=tokens, called=tokens, changed=True)


def thread_of(owner: str, request: LlmRequest, past: ConversationHistory) -> ConversationThread:
    """The thread of a request. Another model means another conversation, as its cache is separate."""
    named = [(owner, hash((request.model, request.conversation)))] if request.conversation else []
    begun = (request.model, past.system, *(tool.definition for tool in request.tools))
    now, before = ((owner, hash((*begun, *past.said[:end]))) for end in (len(past.said), past.asked))
    found = (*named, now, before) if past.is_answered else tuple(named)
    return ConversationThread(owner=owner, kept_under=(*named, now)[0], found_under=found)


def _names(request: LlmRequest, places: Iterable[int]) -> tuple[str, ...]:
    """As tuples: they take a quarter of the memory of sets, and there are thousands. They share the names."""
    return tuple(intern(request.tools[place].name) for place in places)


def _prefix(request: LlmRequest, system: str, places: Iterable[int]) -> int:
    """A hash of what a provider's cache matches, up to the system text."""
    return hash((request.model, system, *(request.tools[place].definition for place in places)))


def billed(used: TokenUsage, prices: CachePrices) -> float:
    """The bill in plain input tokens."""
    plain = used.input - used.cache_read - used.cache_write
    return prices.read * used.cache_read + prices.write * used.cache_write + max(plain, 0)


def _came(rounds: Sequence[Places]) -> Iterator[Places]:
    """The tools that each round added, for rounds that added any."""
    for before, now in pairwise(rounds):
        if now - before:
            yield now - before
