"""The text of a turn that tools are matched against."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from pegboard.model import Message, Turn
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words

QueryKind = Literal["last_user", "last_message", "conversation", "observation"]

SHORT = 4
"""A message with fewer content words than this depends on earlier ones (P3)."""
OBSERVED = 300
"""Maximum characters of a tool's result in the query, so that it does not drown the intent."""
EDGE = 2000
"""Characters kept from the start and the end of a very long message, where requests usually are (P6)."""


def last_user(turn: Turn) -> str:
    """The current user message (Tool Attention §4.2); an image-only one falls back to earlier text (P2)."""
    return edges(next((text for text in _user_texts(turn)), ""))


def last_message(turn: Turn) -> str:
    """`$.messages[-1].content`, of any role (the gateway article, step 1)."""
    return edges(turn.messages[-1].text) if turn.messages else ""


def conversation(turn: Turn) -> str:
    """The user's latest intent, with earlier ones if it is short or elliptical (P1, P3).

    Never a tool's result. Without any user text, all other text (P4).
    """
    texts = _user_texts(turn)
    if not texts:
        return edges("\n".join(message.text for message in turn.messages if message.role != "tool" and message.text))
    asked = [texts[0]]
    for earlier in texts[1:]:
        if not elliptical(" ".join(asked)):
            break
        asked.append(earlier)
    return edges("\n".join(reversed(asked)))


def observation(turn: Turn) -> str:
    """The intent and, if the turn ends with a tool's result, the start of that result (Tool Attention §8).

    So each step of an agent's loop has its own query. The intent stays in it: a result alone is not an intent (P1).
    """
    last = next((message for message in reversed(turn.messages) if message.role != "system"), None)
    intent = conversation(turn)
    result = "" if last is None or last.role != "tool" else "\n".join(part.text for part in last.parts).strip()
    return f"{intent}\n{result[:OBSERVED]}".strip() if result else intent


def elliptical(text: str) -> bool:
    """
    >>> elliptical("and in London?"), elliptical("create a branch and open a pull request")
    (True, False)
    """
    return sum(word not in FUNCTION_WORDS for word in raw_words(text[:EDGE])) < SHORT


def edges(text: str) -> str:
    """The start and end of a long text, which bounds the work for pasted text (P6)."""
    return text if len(text) <= 2 * EDGE else f"{text[:EDGE]}\n{text[-EDGE:]}"


def _user_texts(turn: Turn) -> list[str]:
    """Non-empty texts of user messages, latest first."""
    return [message.text for message in reversed(turn.messages) if is_user_text(message)]


def is_user_text(message: Message) -> bool:
    """Whether it is a message of the user with any text."""
    return message.role == "user" and bool(message.text.strip())


QUERIES: Mapping[QueryKind, Callable[[Turn], str]] = {
    "last_user": last_user,
    "last_message": last_message,
    "conversation": conversation,
    "observation": observation,
}
