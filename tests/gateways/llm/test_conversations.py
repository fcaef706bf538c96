"""Which requests are of one conversation, and what this process remembers of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from model_bodies import FORMATS, asking, called, parsed
from pegboard.gateways.llm.conversation.history import ConversationHistory, Stage
from pegboard.gateways.llm.conversation.store import Conversations, ConversationThread, thread_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.selection.cache_aware_selection import ConversationState
from pegboard.habits import habits_of
from pegboard.testing import FakeClock

CHAT = "openai_chat"
ANSWER = {"role": "assistant", "content": "Done."}


def chat(*said: str, **more: Any) -> LlmRequest:
    """A Chat Completions request in which every message but the last was answered."""
    messages = [each for text in said for each in ({"role": "user", "content": text}, ANSWER)]
    return parsed(CHAT, asking(CHAT, **more) | {"messages": messages[:-1]})


def thread(owner: str, request: LlmRequest) -> ConversationThread:
    return thread_of(owner, request, ConversationHistory(request.turn, "conversation"))


def sent(conversations: Conversations, owner: str, request: LlmRequest, *places: int) -> None:
    conversations.sent(thread(owner, request), known(conversations, owner, request), request, "", places, "tools")


def known(conversations: Conversations, owner: str, request: LlmRequest) -> ConversationState:
    stage = ConversationHistory(request.turn, "conversation").now
    return conversations.known(thread(owner, request), stage, request, "")


def held(conversations: Conversations, owner: str, request: LlmRequest) -> frozenset[int] | None:
    return known(conversations, owner, request).held


@pytest.fixture
def conversations() -> Conversations:
    return Conversations(FakeClock())


def named(request: LlmRequest, name: str) -> LlmRequest:
    return request.after((), (), name)


def test_the_next_request_of_a_conversation_finds_what_the_one_before_was_sent_with(
    conversations: Conversations,
) -> None:
    sent(conversations, "me", chat("renew my book"), 0, 2)

    assert held(conversations, "me", chat("renew my book", "water the plants")) == {0, 2}


def test_so_does_the_next_step_of_an_agents_loop(conversations: Conversations) -> None:
    first = asking(CHAT, "renew my book")
    sent(conversations, "me", parsed(CHAT, first), 1)

    assert held(conversations, "me", parsed(CHAT, first | {"messages": first["messages"] + called(CHAT, "beta")})) == {
        1
    }


@pytest.mark.requirement("P19")
def test_conversations_of_two_owners_never_meet(conversations: Conversations) -> None:
    sent(conversations, "me", named(chat("renew my book"), "ours"), 0)

    assert held(conversations, "you", named(chat("renew my book", "and now"), "ours")) is None
    assert held(conversations, "you", chat("renew my book", "and now")) is None


def test_one_that_begins_as_another_did_is_a_new_one(conversations: Conversations) -> None:
    sent(conversations, "me", chat("hello"), 0)

    assert held(conversations, "me", chat("hello")) is None


def test_two_that_begin_alike_part_where_they_differ(conversations: Conversations) -> None:
    sent(conversations, "me", chat("hello", "renew my borrowed book"), 0, 1)
    sent(conversations, "me", chat("hello", "water all the plants"), 2, 3)

    assert held(conversations, "me", chat("hello", "renew my borrowed book", "thanks")) == {0, 1}
    assert held(conversations, "me", chat("hello", "water all the plants", "thanks")) == {2, 3}


def test_a_name_holds_a_conversation_together_whatever_its_history_says(conversations: Conversations) -> None:
    sent(conversations, "me", named(chat("hello"), "ours"), 3)

    assert held(conversations, "me", named(chat("a summary of what was said", "go on"), "ours")) == {3}
    assert held(conversations, "me", named(chat("hello"), "ours")) == {3}
    assert held(conversations, "me", named(chat("hello"), "another")) is None


def test_requests_of_a_conversation_are_counted_where_its_history_does_not_show_them(
    conversations: Conversations,
) -> None:
    for _ in range(3):
        sent(conversations, "me", named(chat("go on"), "ours"), 0)

    assert known(conversations, "me", named(chat("go on"), "ours")).stage.answers == 3


@pytest.mark.parametrize("shared", [{"user": "u1"}, {"metadata": {"user_id": "u1"}}, {"prompt_cache_key": "k"}])
def test_what_spans_conversations_names_none(conversations: Conversations, shared: dict[str, Any]) -> None:
    sent(conversations, "me", chat("renew my book", **shared), 0)

    assert held(conversations, "me", chat("water the plants", "thanks", **shared)) is None


def test_another_model_or_other_tools_make_another_conversation(conversations: Conversations) -> None:
    sent(conversations, "me", chat("hello", model="small"), 0)

    assert held(conversations, "me", chat("hello", "go on", model="large")) is None
    assert held(conversations, "me", chat("hello", "go on", model="small", tools=["alpha"])) is None


def test_how_long_ago_its_tools_were_sent_is_known_while_they_and_the_system_text_are_the_same() -> None:
    clock = FakeClock()
    conversations = Conversations(clock)
    before = named(chat("hello"), "ours")
    sent(conversations, "me", before, 0, 1)
    clock.advance(7)

    assert known(conversations, "me", before).idle == 7
    assert known(conversations, "me", named(chat("hello", tools=["beta", "alpha"]), "ours")).idle is None
    assert conversations.known(thread("me", before), Stage(), before, "another system text").idle is None


def test_how_long_ago_all_tools_were_sent_counts_for_every_conversation_of_the_owner_and_the_model() -> None:
    clock = FakeClock()
    conversations = Conversations(clock)
    sent(conversations, "me", chat("hello"), 0, 1, 2, 3)
    clock.advance(7)

    assert known(conversations, "me", chat("something else")).whole_idle == 7
    assert known(conversations, "me", chat("something else", model="another")).whole_idle is None
    assert known(conversations, "you", chat("hello")).whole_idle is None


def test_the_oldest_conversations_are_forgotten() -> None:
    conversations = Conversations(FakeClock(), capacity=2)
    for number in range(3):
        sent(conversations, "me", chat(f"hello {number}"), 0)

    found = [held(conversations, "me", chat(f"hello {number}", "go on")) for number in range(3)]

    assert found == [None, {0}, {0}]


@pytest.mark.parametrize("key", ["", "eve"])
def test_no_caller_makes_the_conversations_of_others_be_forgotten(key: str) -> None:
    """A key is one caller, whatever other credentials it sends."""
    conversations = Conversations(FakeClock(), capacity=4)
    sent(conversations, "me", chat("hello"), 0, 1, 2, 3)
    for number in range(9):
        owner = f"owner {number}" if key else "you"
        request = chat(f"hello {number}", model=f"model {number}")
        turn = replace(request.turn, habits=habits_of(key, owner))
        sent(conversations, owner, replace(request, turn=turn), 0, 1, 2, 3)

    assert held(conversations, "me", chat("hello", "go on")) == {0, 1, 2, 3}
    assert known(conversations, "me", chat("something else")).whole_idle == 0


@pytest.mark.parametrize("name", FORMATS)
def test_conversations_of_every_format_are_told_apart(conversations: Conversations, name: str) -> None:
    request = parsed(name, asking(name, "renew my book"))

    sent(conversations, "me", named(request, "ours"), 1, 2)

    assert held(conversations, "me", request) is None
    assert held(conversations, "me", named(request, "ours")) == {1, 2}
    assert known(conversations, "me", named(request, "ours")).idle == 0
