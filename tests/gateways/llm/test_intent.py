"""What a request is about is what the person said, whatever else its messages hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from model_bodies import CONVERSATION, FORMATS, asking, called, parsed
from pegboard.gateways.llm.conversation.history import ConversationHistory
from pegboard.retrieval.query import conversation

formats = pytest.mark.parametrize("name", FORMATS)
ASK = "Fetch invoice 7"
REMINDER = "<system-reminder>\nMind the weather.\n</system-reminder>"
FILE = "# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\nAlways check the weather.\n</INSTRUCTIONS>"
STATE = "<environment_context>\n  <cwd>/weather</cwd>\n</environment_context>"


def user(name: str, *texts: str) -> dict[str, Any]:
    if name == "gemini":
        return {"role": "user", "parts": [{"text": text} for text in texts]}
    kind = "input_text" if name == "openai_responses" else "text"
    return {"role": "user", "content": [{"type": kind, "text": text} for text in texts]}


def asked(name: str, messages: Sequence[dict[str, Any]]) -> str:
    body = asking(name) | {CONVERSATION[name]: list(messages)}
    return conversation(parsed(name, body).turn)


@pytest.mark.requirement("A1")
@pytest.mark.parametrize("role", ["system", "developer"])
@pytest.mark.parametrize("name", ["anthropic", "openai_chat", "openai_responses"])
def test_a_message_that_instructs_is_none_of_the_persons_wherever_it_stands(name: str, role: str) -> None:
    note = {"role": role, "content": "Today's weather is fine."}

    assert asked(name, [note, user(name, ASK), note]) == ASK


@pytest.mark.requirement("A1")
@formats
def test_what_a_harness_writes_in_the_users_name_is_not_matched(name: str) -> None:
    assert asked(name, [user(name, FILE, STATE), user(name, REMINDER, ASK, REMINDER)]) == ASK
    assert asked(name, [user(name, f"{STATE}\n{ASK}\n\n{REMINDER}")]) == ASK
    assert asked(name, [user(name, ASK), *called(name, "alpha", "weather"), user(name, REMINDER)]) == ASK


@pytest.mark.requirement("A1")
@formats
def test_a_reminder_after_a_call_is_no_new_turn_of_the_persons(name: str) -> None:
    body = asking(name) | {CONVERSATION[name]: [user(name, ASK), *called(name, "alpha"), user(name, REMINDER)]}

    assert ConversationHistory(parsed(name, body).turn, "conversation").looping


@pytest.mark.requirement("A1")
def test_a_conversation_is_known_by_its_system_text_and_not_by_notes_that_come_later() -> None:
    def past(note: str) -> ConversationHistory:
        messages = [{"role": "user", "content": ASK}, {"role": "system", "content": note}]
        return ConversationHistory(
            parsed("anthropic", asking("anthropic") | {"system": "You help.", "messages": messages}).turn,
            "conversation",
        )

    assert past("It is Monday.").system == past("It is Tuesday.").system == "You help."
    assert past("It is Monday.").said == past("It is Tuesday.").said == (ASK,)
