"""Which words of a conversation are the person's own: a harness writes in the user's name, too (`notes`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pegboard.model import Message, Turn
from pegboard.retrieval.notes import apart, may_hold_notes


def as_said(turn: Turn) -> Turn:
    """The turn with what a harness put into the user's messages as notes, which nothing is matched by.

    Where nothing is left of what a person seems to have said, it stays as it is: harnesses add messages of nothing but
    notes before the first words, beside the person's, and after calls, and do not take the person's turn. So does a
    conversation of which nothing is left.
    """
    messages = tuple(map(_split, turn.messages))
    if all(new is old for new, old in zip(messages, turn.messages, strict=True)):
        return turn
    messages = tuple(_with_every_turn(turn.messages, messages))
    return replace(turn, messages=messages) if any(map(_says_something, messages)) else turn


def _split(message: Message) -> Message:
    if message.role != "user" or not any(part.kind == "text" and may_hold_notes(part.text) for part in message.parts):
        return message
    parts = tuple(each for part in message.parts for each in (apart(part.text) if part.kind == "text" else [part]))
    return replace(message, parts=parts)


def _with_every_turn(before: Sequence[Message], after: Sequence[Message]) -> Iterator[Message]:
    """``after`` with those messages as they were ``before`` that are all the person's answer to the assistant."""
    begun = owed = False
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        following = after[place + 1].role if place + 1 < len(after) else ""
        if new.role == "user":
            spoke = _says_something(new)
            yield old if owed and not spoke and following != "user" else new
            begun, owed = begun or spoke, owed and not spoke
            continue
        if new.role != "system":
            owed = begun and new.role == "assistant" and all(part.kind != "tool_call" for part in new.parts)
        yield new


def _says_something(message: Message) -> bool:
    return message.role == "user" and bool(message.text.strip())
