"""Conversations that the provider keeps, as far as their next request needs them (Responses)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from pegboard.gateways.llm.codec import Request
from pegboard.model import Message, Part
from pegboard.retrieval.query import edges

KEPT_BY_PROVIDERS = frozenset({"openai_responses"})
"""The formats in which a request can go on from an earlier answer, by its id."""
USER_MESSAGES = 8
"""The user's last messages that are remembered: intents reach back over short ones only (P3)."""


ANSWERED = Message(role="assistant")
"""Stands for an answer: what was said before it was asked before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What the user asked for, which tools were called, and what the conversation goes by: its first answer's id."""

    messages: tuple[Message, ...]
    called: frozenset[str]
    conversation: str


class Histories:
    """The last ``capacity`` answers, by whose they are and by the provider's id.

    A request that continues one that is not known here is left alone (`obedience.left_alone`), and so is one in a
    `conversation`, into which others may have put anything.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._known: OrderedDict[tuple[str, str], History] = OrderedDict()

    def resumed(self, owner: str, request: Request) -> Request:
        """The request with the history it goes on from, where that is known."""
        history = None if request.continues is None else self._known.get((owner, request.continues))
        if history is None:
            return request
        return request.after(history.messages, history.called, history.conversation)

    def remember(self, owner: str, id_: str, request: Request, called: Collection[str]) -> None:
        """Under the id of its answer, what a request (`resumed`, if it continues one) was about and what was called."""
        if request.continues is not None:
            return
        self._known[owner, id_] = History(
            messages=(*_said(request), ANSWERED),
            called=request.called | frozenset(called),
            conversation=request.conversation or id_,
        )
        self._known.move_to_end((owner, id_))
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)


def _said(request: Request) -> Iterator[Message]:
    """What the user said last, and where answers came in between."""
    talk = [each for each in request.turn.messages if each.role == "assistant" or _by_user(each)]
    first = [place for place, each in enumerate(talk) if _by_user(each)][-USER_MESSAGES:][:1]
    for before, message in pairwise((ANSWERED, *talk[first[0] if first else len(talk) :])):
        if _by_user(message):
            yield Message(role="user", parts=(Part(text=edges(message.text)),))
        elif _by_user(before):
            yield ANSWERED


def _by_user(message: Message) -> bool:
    return message.role == "user" and bool(message.text.strip())
