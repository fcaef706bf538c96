"""Tells a person's words from the notes that a harness writes in the user's name, in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pegboard.model import Message, Part, Turn
from pegboard.retrieval.query import is_user_text

OPENING = re.compile(r"<([A-Za-z][\w.-]{0,63})(?:\s[^<>]{0,500})?>")
CLOSING = re.compile(r"</([A-Za-z][\w.-]{0,63})>")
LONGEST_CLOSING = 70
MOST = 256
"""Maximum notes removed at either end of a text."""
INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
BLANKS = re.compile(r"\s*")
REST_OF_LINE = re.compile(r"[^\S\n]*(?:\n|\Z|(?=<))")
"""Only blanks, or the next tag: notes are on separate lines."""
SINGLE = frozenset(
    re.findall(
        r"\w+",
        "attachment attachments context env environment instructions memory metadata reminder rules skills system "
        "tools workspace",
    )
)
"""Harness tags of one word. Others are recognized by having several: `system-reminder`, `environment_context`."""
SPOKEN = frozenset(
    re.findall(
        r"\w+",
        "ask bashinput commandargs feedback goal humanmessage objective prompt query question request task userask "
        "userfeedback userinput usermessage userprompt userquery userquestion userrequest usertask usertext",
    )
)
"""Tags around the person's words, without separators: Cline's `task`, Cursor's `user_query`, VS Code's `userRequest`,
Claude Code's `command-args`."""
HEADING = re.compile(r"#{1,6} [^\n]{0,200}\b[A-Z]{3,20}\.md\b[^\n]{0,300}(?:\n|\Z)")
"""The heading of an instruction file as Codex writes it: `# AGENTS.md instructions for /work`."""
PREAMBLES = (
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "This is the Qwen Code. We are setting up the context for our chat.",
)
"""Beginnings of texts that are notes as a whole: @google/gemini-cli before its tags, @qwen-code/qwen-code 0.15.10."""


def may_hold_notes(text: str) -> bool:
    """A quick check whether a text may contain notes; hardly any does."""
    end = _trimmed(text, 0, len(text))
    return text.startswith(("<", "#", *PREAMBLES), _behind_blanks(text, 0)) or text.endswith(">", 0, end)


def split_notes(text: str) -> list[Part]:
    """A user's text split into the person's words and the notes around them.

    >>> [(part.kind, part.text) for part in split_notes("<system-reminder>It rains.</system-reminder>\\nFix calc.py")]
    [('note', '<system-reminder>It rains.</system-reminder>\\n'), ('text', 'Fix calc.py')]
    """
    start = _start(text)
    start, end = _spoken(text, start) or (start, _end(text, start))
    end = _trimmed(text, start, end) if end < len(text) else end
    parts = (Part(kind="note", text=text[:start]), Part(text=text[start:end]), Part(kind="note", text=text[end:]))
    return [part for part in parts if part.text]


def is_note(tag: str) -> bool:
    """Whether an element of this name is a harness's note.

    >>> is_note("environment_context"), is_note("user_query"), is_note("div")
    (True, False, False)
    """
    if _joined(tag) in SPOKEN:
        return False
    return "_" in tag or "-" in tag or INNER_CAPITAL.search(tag) is not None or tag.casefold() in SINGLE


def _joined(tag: str) -> str:
    return tag.replace("_", "").replace("-", "").casefold()


def _start(text: str) -> int:
    """The end of the notes at the start of a text."""
    at = _behind_blanks(text, 0)
    for _ in range(MOST):
        before, at = at, _behind_blanks(text, _behind_note(text, at))
        if at == before:
            break
    return at


def _behind_note(text: str, at: int) -> int:
    """The end of the note that begins here; the same place if none does."""
    if text.startswith(PREAMBLES, at):
        return len(text)
    heading = HEADING.match(text, at)
    if heading is not None:
        return _element(text, _behind_blanks(text, heading.end())) or len(text)
    tag = OPENING.match(text, at)
    return (tag is not None and is_note(tag[1]) and _element(text, at)) or at


def _spoken(text: str, start: int) -> tuple[int, int] | None:
    """The content of the element that begins here, if such elements contain a person's words."""
    tag = OPENING.match(text, start)
    end = _element(text, start) if tag is not None and _joined(tag[1]) in SPOKEN else None
    return None if tag is None or end is None else (tag.end(), text.rindex("</", tag.end(), end))


def _element(text: str, at: int) -> int | None:
    """The end of the element that begins here; None if none does, or if more text follows on its last line."""
    tag = OPENING.match(text, at)
    if tag is None:
        return None
    name, end, depth = tag[1], tag.end(), 1
    closing = f"</{name}>"
    while depth:
        close = text.find(closing, end)
        if close < 0:
            return None
        depth += text.count(f"<{name}>", end, close) + text.count(f"<{name} ", end, close) - 1
        end = close + len(closing)
    return end if REST_OF_LINE.match(text, end) else None


def _end(text: str, start: int) -> int:
    """The start of the notes at the end of a text, after ``start``; each is on separate lines."""
    end = len(text)
    for _ in range(MOST):
        trimmed = _trimmed(text, start, end)
        last = text.rfind("</", max(start, trimmed - LONGEST_CLOSING), trimmed)
        tag = CLOSING.fullmatch(text, last, trimmed) if last >= 0 else None
        begin = _opened(text, tag[1], start, last) if tag is not None and is_note(tag[1]) else None
        if begin is None or text[max(start, begin - 1) : begin] not in ("", "\n", ">"):
            break
        end = begin
    return end


def _opened(text: str, name: str, start: int, end: int) -> int | None:
    """The start of the element whose closing tag is at ``end``."""
    depth, opening, closing = 1, f"<{name}", f"</{name}>"
    while depth:
        at = text.rfind(opening, start, end)
        if at < 0:
            return None
        if text[at + len(opening)] in "> ":
            depth += text.count(closing, at, end) - 1
        else:
            depth += text.count(closing, at, end)
        end = at
    return end


def _behind_blanks(text: str, at: int) -> int:
    found = BLANKS.match(text, at)
    return at if found is None else found.end()


def _trimmed(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1].isspace():
        end -= 1
    return end


def mark_notes(turn: Turn) -> Turn:
    """The turn with a harness's text in user messages marked as notes, which are not matched against tools.

    A message that is all notes stays unchanged if it is the only answer to the assistant: harnesses add messages of
    notes before the first words, beside the person's message and after calls, but do not answer in the person's place.
    A conversation of which nothing would be left stays unchanged too.
    """
    messages = tuple(map(_split, turn.messages))
    if all(new is old for new, old in zip(messages, turn.messages, strict=True)):
        return turn
    messages = tuple(_with_every_turn(turn.messages, messages))
    return replace(turn, messages=messages) if any(map(is_user_text, messages)) else turn


def _split(message: Message) -> Message:
    if message.role != "user" or not any(part.kind == "text" and may_hold_notes(part.text) for part in message.parts):
        return message
    parts = tuple(
        each for part in message.parts for each in (split_notes(part.text) if part.kind == "text" else [part])
    )
    return replace(message, parts=parts)


def _with_every_turn(before: Sequence[Message], after: Sequence[Message]) -> Iterator[Message]:
    """``after``, but with the message of ``before`` where it is the person's only answer to the assistant."""
    begun = owed = False
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        following = after[place + 1].role if place + 1 < len(after) else ""
        if new.role == "user":
            spoke = is_user_text(new)
            yield old if owed and not spoke and following != "user" else new
            begun, owed = begun or spoke, owed and not spoke
            continue
        if new.role != "system":
            owed = begun and new.role == "assistant" and all(part.kind != "tool_call" for part in new.parts)
        yield new
