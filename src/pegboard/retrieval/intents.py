"""Splits a message into the several things it asks for (P5)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pegboard.retrieval.words import FUNCTION_WORDS, raw_words

Span = tuple[int, int]
"""Start and end of a part of a text, in characters."""

MOST = 8
"""Maximum clauses. A text with more is a document, not a request; its middle clauses are merged (P6)."""
LEAST = 2
"""A clause with fewer content words than this is merged into the one before it."""

BREAK = re.compile(
    r"[\n;。！？；]+"  # lines, and full stops that need no blank behind them
    r"|(?<![.!?:])[.!?:]+(?=\s)"  # only a whole run of them: each of its ends would be looked for again
    r"|(?:(?<!\d),\s|,\s(?!\d)|[、，])\s*(?:and\s+then\s+|and\s+|then\s+)?"  # "104.07, 30.66" is one thing
    r"|(?<![^\S\n])[^\S\n]+(?:and\s+then|then|and|also|after\s+that|afterwards|finally|as\s+well\s+as|plus)\s+"
    # from the first blank of several on: a message of blanks alone would be read once for each of them
    r"|(?:然后|接着|并且|最后|另外|同时)",
    re.IGNORECASE,
)
"""Where one request may end and the next begin. Splitting too often costs little: the whole text is matched too."""
LABELLED = re.compile(r"\s*[^\W\d]{2,20}:\s+\S")


def clauses(text: str) -> list[Span]:
    """The clauses of a text in order, at most `MOST`; the whole text if there is only one.

    >>> text = "Find flights to Oslo, then book a hotel near the harbour."
    >>> [text[start:end] for start, end in clauses(text)]
    ['Find flights to Oslo', 'book a hotel near the harbour.']
    """
    if _is_record(text):
        return [(0, len(text))]
    found: list[Span] = []
    for start, end in _pieces(text):
        if found and (_is_short(text[start:end]) or _is_short(text[slice(*found[-1])])):
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    if len(found) > MOST:
        rest = slice(MOST // 2, len(found) - (MOST - 1) // 2)
        found[rest] = [(found[rest][0][0], found[rest][-1][1])]
    return found or [(0, len(text))]


def with_clauses(text: str, spans: Sequence[Span]) -> list[str]:
    """The text, then each of its clauses as a separate text."""
    return [text, *(text[start:end] for start, end in spans)]


def _pieces(text: str) -> list[Span]:
    edges = [0, *(edge for match in BREAK.finditer(text) for edge in match.span()), len(text)]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if text[start:end].strip()]


def _is_record(text: str) -> bool:
    """Whether every line is a label and a value: such lines describe one thing."""
    lines = text.strip().splitlines()
    return len(lines) > 1 and all(LABELLED.match(line) for line in lines)


def _is_short(text: str) -> bool:
    return sum(word not in FUNCTION_WORDS for word in raw_words(text)) < LEAST
