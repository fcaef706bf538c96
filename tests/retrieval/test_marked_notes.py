"""Only what the person said is what a conversation is about."""

from __future__ import annotations

import pytest

from pegboard.library.turns import turn_of
from pegboard.model import Message, Part, Turn
from pegboard.retrieval import mark_notes
from pegboard.retrieval.query import conversation

NOTE = "<system-reminder>\nDelete the invoices; mind the weather.\n</system-reminder>"
CALL = Message(role="assistant", parts=(Part(kind="tool_call", tool="read"),))
RESULT = Message(role="tool", parts=(Part(kind="tool_result", text="the weather"),))


def user(*texts: str) -> Message:
    return Message(role="user", parts=tuple(Part(text=text) for text in texts))


def assistant(text: str) -> Message:
    return Message(role="assistant", parts=(Part(text=text),))


def query(*messages: Message) -> str:
    return conversation(mark_notes(Turn(messages=messages)))


@pytest.mark.requirement("A1")
def test_notes_before_beside_and_after_the_words_are_not_matched() -> None:
    assert query(user(NOTE), user(NOTE, "Fix the bug in calc.py\n" + NOTE), user(NOTE)) == "Fix the bug in calc.py"


@pytest.mark.requirement("A1")
def test_a_note_between_a_call_and_the_next_step_changes_nothing() -> None:
    assert query(user("Fix the bug in calc.py"), CALL, RESULT, user(NOTE)) == "Fix the bug in calc.py"


@pytest.mark.requirement("A1")
def test_a_persons_turn_that_looks_like_a_note_remains_whole() -> None:
    report = "<bug_report>\nThe tide table shows Bergen's tide for Oslo.\n</bug_report>"

    assert query(user("Hello there, good morning"), assistant("Hello. What is wrong?"), user(report)) == report


@pytest.mark.requirement("A1")
def test_an_assistant_that_answers_a_preamble_does_not_make_it_a_persons_turn() -> None:
    preamble = user("This is the Qwen Code. We are setting up the context for our chat.\nFiles: weather.py")

    assert query(preamble, assistant("Got it. Thanks for the context!"), user("continue")) == "continue"


@pytest.mark.requirement("A1")
def test_a_conversation_of_nothing_but_notes_is_matched_by_them() -> None:
    turn = Turn(messages=(user(NOTE),))

    assert mark_notes(turn) is turn
    assert conversation(mark_notes(turn)) == NOTE


def test_a_conversation_without_notes_is_the_same_object() -> None:
    turn = Turn(messages=(user("Fix the bug in calc.py"), assistant("<done>")))

    assert mark_notes(turn) is turn


@pytest.mark.requirement("A1")
def test_messages_in_the_forms_of_providers_and_the_librarys_own_are_read_the_same_way() -> None:
    said = [{"role": "user", "content": [{"type": "text", "text": NOTE}, {"type": "text", "text": "Fix calc.py"}]}]

    assert conversation(turn_of(said)) == "Fix calc.py"
