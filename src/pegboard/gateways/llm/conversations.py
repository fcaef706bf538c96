"""What each conversation was last sent with, as far as this process sent it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.past import Past, Stage
from pegboard.gateways.llm.settling import Known, Relevant, named
from pegboard.prompt_cache import Account
from pegboard.seams import Clock
from pegboard.settings.llm import Way

Key = tuple[str, int]
"""Whose it is, as it stands, and a hash of the rest: two tenants never meet, whatever hashes do."""
V = TypeVar("V")
CAPACITY = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """Where a conversation is found, the surest place first, and where it is kept.

    One that has a name, by our header or by the answer that it continues, goes by that. Any other goes by its system
    text, its tools, and what the user said up to now: two that begin alike part where they differ, and one that is
    taken up again from an earlier message finds what was sent there. Where nothing was answered yet it is a new one,
    whoever said the same before.
    """

    owner: str
    kept_under: Key
    found_under: tuple[Key, ...]


def thread_of(owner: str, request: Request, past: Past) -> Thread:
    """The thread of a request. Another model has caches of its own."""
    named = [(owner, hash((request.model, request.conversation)))] if request.conversation else []
    begun = (request.model, past.system, *(tool.definition for tool in request.tools))
    now, before = ((owner, hash((*begun, *past.said[:end]))) for end in (len(past.said), past.asked))
    found = (*named, now, before) if past.is_answered else tuple(named)
    return Thread(owner=owner, kept_under=(*named, now)[0], found_under=found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A conversation's last request: the names of its tools, what the provider's cache knows it by, and when it was.

    ``requests`` is how many there were, ``way`` the one that the conversation takes. The others are those of
    `settling.Relevant`, by the names of tools. ``account`` is what all of them were billed.
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
    account: Account


class Conversations:
    """The last ``capacity`` conversations by what they were sent with; and when which tools were last sent whole."""

    def __init__(self, clock: Clock, capacity: int = CAPACITY) -> None:
        self._clock = clock
        self._capacity = capacity
        self._sent: OrderedDict[Key, Sent] = OrderedDict()
        self._whole: OrderedDict[Key, float] = OrderedDict()

    def known(self, thread: Thread, stage: Stage, request: Request, system: str) -> Known:
        """What this process knows of a conversation that is at this stage, by its own history."""
        now = self._clock.monotonic()
        whole = self._whole.get((thread.owner, _prefix(request, system, range(len(request.tools)))))
        known = Known(stage=stage, whole_idle=None if whole is None else now - whole)
        sent = next((self._sent[key] for key in thread.found_under if key in self._sent), None)
        if sent is None:
            return known
        held = named(request, frozenset(sent.names))
        return replace(
            known,
            stage=replace(stage, answers=max(stage.answers, sent.requests)),
            held=held,
            idle=now - sent.at if sent.prefix == _prefix(request, system, sorted(held)) else None,
            relevant=Relevant(
                before=named(request, frozenset(sent.before)),
                any=named(request, frozenset(sent.any)),
                called=named(request, frozenset(sent.called)),
                changed=sent.changed,
            ),
            way=sent.way,
            account=sent.account,
        )

    def sent(
        self, thread: Thread, known: Known, request: Request, system: str, places: Sequence[int], way: Way | None
    ) -> None:
        """A request goes out with these tools, in their order; ``known`` has what is relevant to it already, and what
        it is billed."""
        now, prefix = self._clock.monotonic(), _prefix(request, system, places)
        sent = Sent(
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
        )
        _keep(self._sent, thread.kept_under, sent, self._capacity)
        if len(places) == len(request.tools):
            _keep(self._whole, (thread.owner, prefix), now, self._capacity)


def _names(request: Request, places: Iterable[int]) -> tuple[str, ...]:
    """Of thousands of conversations: tuples take a quarter of what sets do."""
    return tuple(request.tools[place].name for place in places)


def _prefix(request: Request, system: str, places: Iterable[int]) -> int:
    """What a provider's cache knows a request by, up to its system text."""
    return hash((request.model, system, *(request.tools[place].definition for place in places)))


def _keep(known: OrderedDict[Key, V], key: Key, value: V, most: int) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > most:
        known.popitem(last=False)
