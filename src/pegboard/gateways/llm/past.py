"""What a request's own history says of the requests before it. Pure, and bounded whatever the history's length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from pegboard.model import Message, Turn
from pegboard.retrieval import QUERIES, QueryKind

REACH = 8
"""The user's last messages that a query is made of: intents reach back over short ones only (P3)."""
MOST_ASKS = 64
STEP = 32
"""Of more than so many asks the oldest are dropped, so many at once: what they had picked leaves seldom."""
CHARACTERS_A_TOKEN = 4
OF_THE_USER = frozenset[QueryKind]({"conversation", "last_user"})
"""The queries that a tool's result does not change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """How far a conversation was when a request was made.

    ``answers`` is how many requests there were before. ``behind`` are the tokens up to the last answer, ``ahead`` those
    after it, estimated at four characters each: to count those of a long history would take longer than all the rest.
    ``system`` are those of the system texts, which are behind the tools too. ``called`` names the tools that were
    called.
    """

    answers: int = 0
    behind: int = 0
    ahead: int = 0
    system: int = 0
    called: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What earlier requests were matched by, as much of the conversation as that was made of, and the first's stage."""

    query: str
    turn: Turn
    stage: Stage


class Past:
    """A request's conversation behind its system texts, and where in it the earlier requests ended: each is answered.

    ``said`` are the texts that its queries are made of, ``asked`` how many of them the request before had; ``system``
    are the system texts.
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
        """Whether the request is another step of the one before: nothing was said that is matched."""
        return 0 < self.asked == len(self.said)

    @property
    def now(self) -> Stage:
        """The stage of the request itself."""
        return self._stage(len(self._talk))

    @property
    def is_answered(self) -> bool:
        return bool(self._ends)

    @property
    def first(self) -> Ask | None:
        """What the conversation's first request was matched by, if by anything."""
        end = self._ends[0] if self._ends else len(self._talk)
        number = bisect_left(self._users, end)
        return self._ask(number, end) if number or not self._of_the_user else None

    def asks(self) -> Iterator[Ask]:
        """The distinct queries of the earlier requests in a row, oldest first; within an agent's loop one is asked
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
        """That of the request that ended here."""
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
        """How many messages of the user's there were, and where the request ended."""
        last = 0
        for end in self._ends:
            number = bisect_left(self._users, end)
            if not self._of_the_user or number > last:
                yield number, end
            last = number

    def _asked_with(self, number: int, end: int) -> Iterator[int]:
        """The places that a query is made of."""
        yield from self._users[max(0, number - REACH) : number]
        if not self._of_the_user and (not number or self._users[number - 1] != end - 1):
            yield end - 1


def _forgotten(asks: int) -> int:
    return -(-max(0, asks - MOST_ASKS) // STEP) * STEP


def _text(message: Message) -> str:
    return "\n".join(part.text for part in message.parts if part.kind != "note")


def _length(message: Message) -> int:
    return sum(len(part.text) for part in message.parts)
