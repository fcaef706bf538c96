"""What a request's history says about earlier requests, and histories that the provider keeps. Pure and bounded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from sys import intern

from pegboard.clock import SYSTEM_CLOCK
from pegboard.gateways.llm.conversation.answer_store import AnswerStore, KeptAnswer
from pegboard.gateways.llm.formats.protocol import KeptSearches, LlmRequest, OpenCall
from pegboard.model import Message, Part, Turn
from pegboard.owner_cache import OwnerCache
from pegboard.protocols import Clock
from pegboard.retrieval import QUERIES, QueryKind
from pegboard.retrieval.query import edges

REACH = 8
"""The user's last messages that a query is made of: intents only reach back over short messages (P3)."""
MOST_ASKS = 64
STEP = 32
"""Beyond `MOST_ASKS` the oldest are dropped, this many at once: so what they picked is rarely lost."""
CHARACTERS_A_TOKEN = 4
OF_THE_USER = frozenset[QueryKind]({"conversation", "last_user"})
"""Kinds of queries that tool results do not change."""
ANSWERED = Message(role="assistant")
"""Stands for an answer: what was said before it belongs to an earlier request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The state of a conversation when a request was made.

    ``answers`` counts the earlier requests. ``behind`` are the tokens up to the last answer, ``ahead`` those after it,
    estimated at four characters each: counting a long history would take longer than everything else. ``system`` are
    the tokens of the system texts, which also follow the tools. ``called`` names the tools that were called.
    """

    answers: int = 0
    behind: int = 0
    ahead: int = 0
    system: int = 0
    called: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """The query of an earlier request, the part of the conversation that it was made from, and the stage of that
    request."""

    query: str
    turn: Turn
    stage: Stage


class ConversationHistory:
    """A request's conversation after its system texts, and where in it the earlier, answered requests ended.

    ``said`` are the texts that its queries are made from, ``asked`` is how many of them the previous request had;
    ``system`` holds the system texts.
    """

    def __init__(self, turn: Turn, kind: QueryKind) -> None:
        messages = turn.messages
        begin = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
        system = messages[:begin]
        self._kind = kind
        self._talk = talk = list(messages[begin:])
        self._length = list(accumulate(map(_length, talk), initial=sum(map(_length, system))))
        self._answers = [place for place, message in enumerate(talk) if message.role == "assistant"]
        self._ends = [place for place in self._answers if place and talk[place - 1].role != "assistant"]
        self._users = [place for place, message in enumerate(talk) if message.role == "user" and message.text.strip()]
        self.system = "\n".join(message.text for message in system)
        self.said = tuple(map(_text, map(talk.__getitem__, self._read_from())))
        self.asked = bisect_left(self._users, self._ends[-1]) if self._of_the_user and self._ends else len(self._ends)

    @property
    def _of_the_user(self) -> bool:
        return self._kind in OF_THE_USER

    def _read_from(self) -> list[int]:
        if self._of_the_user:
            return self._users
        return [end - 1 for end in (*self._ends, len(self._talk)) if end]

    @property
    def looping(self) -> bool:
        """Whether the request is another step of the previous one: nothing was said that affects the query."""
        return 0 < self.asked == len(self.said)

    @property
    def now(self) -> Stage:
        """The stage of the request itself."""
        return self._stage(len(self._talk))

    @property
    def is_answered(self) -> bool:
        return bool(self._ends)

    def asks(self) -> Iterator[Ask]:
        """The queries of the earlier requests, oldest first, without consecutive repetitions; an agent loop counts
        once."""
        before = None
        requests = list(self._requests())
        for number, end in requests[_forgotten(len(requests)) :]:
            ask = self._ask(number, end)
            if ask.query != before:
                yield ask
            before = ask.query

    def _ask(self, number: int, end: int) -> Ask:
        turn = Turn(messages=tuple(self._talk[place] for place in self._asked_with(number, end)))
        return Ask(query=QUERIES[self._kind](turn), turn=turn, stage=self._stage(end))

    def _stage(self, end: int) -> Stage:
        """The stage of the request that ended here."""
        before = bisect_left(self._answers, end)
        answered = self._answers[before - 1] + 1 if before else 0
        parts = (part for place in self._answers[:before] for part in self._talk[place].parts)
        return Stage(
            answers=bisect_left(self._ends, end),
            behind=self._length[answered] // CHARACTERS_A_TOKEN,
            ahead=(self._length[end] - self._length[answered]) // CHARACTERS_A_TOKEN,
            system=self._length[0] // CHARACTERS_A_TOKEN,
            called=frozenset(part.tool for part in parts if part.kind == "tool_call" and part.tool),
        )

    def _requests(self) -> Iterator[tuple[int, int]]:
        """For each request, the number of user messages so far and where the request ended."""
        last = 0
        for end in self._ends:
            number = bisect_left(self._users, end)
            if not self._of_the_user or number > last:
                yield number, end
            last = number

    def _asked_with(self, number: int, end: int) -> Iterator[int]:
        """The places of the messages that a query is made from."""
        yield from self._users[max(0, number - REACH) : number]
        if not self._of_the_user and (not number or self._users[number - 1] != end - 1):
            yield end - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderHistory:
    """The user's messages, the tools that were called, the conversation's id (that of its first answer), what our
    searches left in it, if there were any, and the calls that its last answer left open."""

    messages: tuple[Message, ...]
    called: frozenset[str]
    conversation: str
    kept: KeptSearches | None = None
    left_open: tuple[OpenCall, ...] = ()


class ProviderHistories:
    """The last ``capacity`` answers, by owner and the provider's id. The ``caller`` with most of them loses its oldest:
    the name of a gateway key, under which there may be many owners; without a key, the owner.

    Of the last calls, by owner and the provider's id, it has the names: a client may repeat a call by reference.

    A request that continues an unknown answer is left alone (`tool_choice.left_alone`), and so is one in a
    `conversation`, to which others may have added anything. What searches left behind is also in ``answers``, for other
    replicas and later processes; what users said is not.
    """

    def __init__(self, capacity: int = 10_000, answers: AnswerStore | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._answers = answers
        self._known = OwnerCache[tuple[str, str], ProviderHistory](capacity, clock.monotonic)
        self._last = OwnerCache[tuple[str, str], str](capacity, clock.monotonic)
        self._earlier = OwnerCache[tuple[str, str], tuple[str, ...]](capacity, clock.monotonic)
        self._calls = OwnerCache[tuple[str, str], str](capacity, clock.monotonic)

    def resumed(self, owner: str, request: LlmRequest) -> LlmRequest:
        """The request with the history that it continues and the names of calls in its own, if those are known."""
        if request.unnamed:
            names = {call: self._calls.get((owner, call)) for call in request.unnamed}
            request = request.naming({call: name for call, name in names.items() if name})
        history = None if request.continues is None else self._known.get((owner, request.continues))
        if history is None:
            return request
        kept = history.kept
        if kept is not None:
            kept = replace(kept, loaded=kept.loaded | (frozenset(request.found) & request.names))
        return replace(request.after(history.messages, history.called, history.conversation), kept=kept)

    async def recall(self, owner: str, id_: str | None, caller: str = "") -> None:
        """Read what the store knows of an answer that this process does not."""
        if id_ is None or self._answers is None or (owner, self.last_of(owner, id_) or id_) in self._known:
            return
        found = await self._answers.load(owner, id_)
        if found is not None:
            self.ended(owner, found.earlier or [id_], found.last, caller)
            history = ProviderHistory(
                messages=(ANSWERED,),
                called=found.called,
                conversation=found.conversation,
                kept=found.kept,
                left_open=found.left_open,
            )
            self._known.put(caller or owner, (owner, found.last), history)

    async def share(self, owner: str, id_: str, earlier: Iterable[str], key: str) -> None:
        """Save what later requests need of this answer, if there were searches: under its own id and under those of
        ``earlier`` answers, which a stream may have told the client. ``key`` is the name of the gateway key."""
        history, others = self._known.get((owner, id_)), tuple(earlier)
        if self._answers is None or history is None or not (history.kept or history.left_open or others):
            return
        answer = KeptAnswer(
            last=id_,
            conversation=history.conversation,
            called=history.called,
            kept=history.kept,
            left_open=history.left_open,
            earlier=others,
        )
        await self._answers.save(owner, (id_, *others), answer, key)

    async def forget(self, owner: str, id_: str) -> None:
        """Forget an answer that the client has deleted, under each of its ids."""
        last = self.last_of(owner, id_) or id_
        ids = dict.fromkeys((*self.earlier(owner, last), last))
        self._known.remove((owner, last))
        self._earlier.remove((owner, last))
        for each in ids:
            self._last.remove((owner, each))
            if self._answers is not None:
                await self._answers.forget(owner, each)

    def last_of(self, owner: str, id_: str | None) -> str:
        """The id of the answer that ended the searches begun in this one; empty if it began none."""
        return "" if id_ is None else self._last.get((owner, id_)) or ""

    def earlier(self, owner: str, last: str) -> tuple[str, ...]:
        """The ids of the answers that began searches which this one ended, as far as they are known."""
        return self._earlier.get((owner, last)) or ()

    def left_open(self, owner: str, id_: str) -> tuple[OpenCall, ...]:
        """The calls of this answer whose results are missing in the provider's history."""
        history = self._known.get((owner, id_))
        return () if history is None else history.left_open

    def ended(self, owner: str, earlier: Iterable[str], last: str, caller: str = "") -> None:
        """Record that answers to one request led to searches, whose ``last`` answer the client has.

        A stream has told the client the id of an earlier one, and the provider's history of that lacks the results.
        """
        ids = tuple(id_ for id_ in earlier if id_ != last)
        for id_ in ids:
            self._last.put(caller or owner, (owner, id_), last)
        if ids:
            self._earlier.put(caller or owner, (owner, last), ids)

    def called(self, owner: str, calls: Mapping[str, str], caller: str = "") -> None:
        """Record the names of the calls of an answer that the provider keeps, by their ids."""
        for call, name in calls.items():
            self._calls.put(caller or owner, (owner, call), intern(name))

    def remember(
        self,
        owner: str,
        id_: str,
        request: LlmRequest,
        called: Collection[str],
        kept: KeptSearches | None = None,
        left_open: Collection[OpenCall] = (),
        caller: str = "",
    ) -> None:
        """Remember, under the id of its answer, what a request (`resumed` if it continues one) was about, what was
        called, what our searches left in the provider's history, and which calls have no result there yet."""
        if request.continues is not None:
            return
        history = ProviderHistory(
            messages=(*_said(request), ANSWERED),
            called=request.called | frozenset(called),
            conversation=request.conversation or id_,
            kept=kept,
            left_open=tuple(left_open),
        )
        self._known.put(caller or owner, (owner, id_), history)


def _forgotten(asks: int) -> int:
    return -(-max(0, asks - MOST_ASKS) // STEP) * STEP


def _text(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if part.kind != "note")


def _length(message: Message) -> int:
    return sum(len(part.text) for part in message.parts)


def _said(request: LlmRequest) -> Iterator[Message]:
    """The user's last messages, and where answers came in between."""
    talk = [each for each in request.turn.messages if each.role == "assistant" or _by_user(each)]
    first = [place for place, each in enumerate(talk) if _by_user(each)][-REACH:][:1]
    for before, message in pairwise((ANSWERED, *talk[first[0] if first else len(talk) :])):
        if _by_user(message):
            yield Message(role="user", parts=(Part(text=edges(message.text)),))
        elif _by_user(before):
            yield ANSWERED


def _by_user(message: Message) -> bool:
    return message.role == "user" and bool(message.text.strip())
