"""What a request's history says of the requests before it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from model_bodies import CONVERSATION, FORMATS, asking, called, parsed
from pegboard.gateways.llm.conversation.history import MOST_ASKS, ConversationHistory
from pegboard.model import Message, Part, Turn
from pegboard.retrieval import QUERIES, QueryKind

formats = pytest.mark.parametrize("name", FORMATS)


def message(role: Any, text: str) -> Message:
    return Message(role=role, parts=(Part(text=text),))


def talk(*said: str, role: Any = "user") -> Turn:
    """Turns of the user's with an answer after each but the last."""
    messages = [each for text in said for each in (message(role, text), message("assistant", "Well."))]
    return Turn(messages=tuple(messages[:-1]))


def asked(past: ConversationHistory) -> list[str]:
    return [ask.query for ask in past.asks()]


def test_each_message_of_the_users_that_was_answered_was_a_request() -> None:
    past = ConversationHistory(
        talk("renew the book of mine", "water the plants please now", "book a flight"), "last_user"
    )

    assert asked(past) == ["renew the book of mine", "water the plants please now"]
    assert past.now.answers == 2
    assert past.said == (*asked(past), "book a flight")
    assert (past.asked, past.looping) == (2, False)


def test_without_an_answer_there_was_no_request() -> None:
    turn = Turn(messages=(message("system", "Be brief."), message("user", "Hello"), message("user", "Anyone?")))

    past = ConversationHistory(turn, "conversation")

    assert (asked(past), past.now.answers, past.now.behind) == ([], 0, len("Be brief.") // 4)


def test_a_greeting_of_the_assistants_answers_nothing() -> None:
    turn = Turn(messages=(message("system", "Be brief."), message("assistant", "Hello!"), message("user", "Hello")))

    assert ConversationHistory(turn, "conversation").now.answers == 0


@pytest.mark.requirement("P1", "P19")
@formats
def test_the_steps_of_an_agents_loop_are_requests_of_one_ask(name: str) -> None:
    body = asking(name, "Renew the book that I borrowed")
    for _ in range(3):
        body[CONVERSATION[name]] += called(name, "alpha")

    past = ConversationHistory(parsed(name, body).turn, "conversation")

    assert asked(past) == ["Renew the book that I borrowed"]
    assert past.now.answers == 3
    assert (past.said, past.asked, past.looping) == (tuple(asked(past)), 1, True)


@pytest.mark.parametrize("kind", QUERIES)
def test_what_an_earlier_request_was_matched_by_is_what_it_was_matched_by_then(kind: QueryKind) -> None:
    said = ["renew the book that I borrowed", "and now?", "water the plants in the garden", "both"]

    past = ConversationHistory(talk(*said), kind)

    assert asked(past) == [QUERIES[kind](talk(*said[: end + 1])) for end in range(3)]
    assert asked(past) == [QUERIES[kind](ask.turn) for ask in past.asks()]


@pytest.mark.requirement("P19")
def test_of_a_long_history_the_oldest_asks_are_left_out_many_at_once() -> None:
    pasts = [
        ConversationHistory(talk(*(f"do the thing number {each}" for each in range(turns))), "last_user")
        for turns in (30, 66, 97)
    ]
    steps = [
        ConversationHistory(talk(*(f"do thing {each}" for each in range(turns))), "last_user")
        for turns in range(66, 99)
    ]

    assert [len(asked(past)) for past in pasts] == [29, 33, 64]
    assert all(len(asked(past)) <= MOST_ASKS for past in steps)
    assert sum(next(before.asks()).query != next(after.asks()).query for before, after in pairwise(steps)) == 1


@formats
def test_the_stage_of_an_earlier_request_is_what_its_own_past_said_then(name: str) -> None:
    first = asking(name, "Renew the book that I borrowed")
    more = [*called(name, "alpha"), *asking(name, "Thanks a lot, and water the plants")[CONVERSATION[name]]]
    second = first | {CONVERSATION[name]: first[CONVERSATION[name]] + more}
    third = second | {CONVERSATION[name]: second[CONVERSATION[name]] + called(name, "beta")}

    past = ConversationHistory(parsed(name, third).turn, "conversation")

    then = [ConversationHistory(parsed(name, body).turn, "conversation").now for body in (first, second)]
    assert [ask.stage for ask in past.asks()] == then
    assert [stage.called for stage in (*then, past.now)] == [set(), {"alpha"}, {"alpha", "beta"}]


def test_tokens_behind_and_ahead_part_at_the_last_answer() -> None:
    turn = Turn(messages=(message("system", "s" * 40), *talk("u" * 80, "v" * 400).messages))

    past = ConversationHistory(turn, "conversation")

    assert (past.now.behind, past.now.ahead) == (10 + (80 + len("Well.")) // 4, 100)
