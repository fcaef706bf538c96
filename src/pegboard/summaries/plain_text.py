"""Turns a tool's description into plain sentences, without markup or sections on arguments, results and examples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

LONGEST = 6000
"""Most characters that are read; descriptions say at the beginning what a tool does."""

MARKUP = (
    (re.compile(r"(```|~~~).*?(\1|\Z)", re.DOTALL), " "),
    (re.compile(r"<(examples?|arguments?|parameters?|returns?)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE), " "),
    (re.compile(r"</?[A-Za-z][\w-]*(\s[^<>]*)?/?>"), " "),
    (re.compile(r"!?\[([^\]\[]*)\]\([^)\s]*\)"), r"\1"),
    (re.compile(r"https?://[^\s)>\"']+"), ""),
    (re.compile(r"(?<!\w)(\*\*|__|\*)(?=\S)([^*\n]+?)(?<=\S)\1(?!\w)"), r"\2"),
    (re.compile(r"`"), ""),
)
"""Code blocks, tagged examples, other tags, links, URLs, emphasis and backticks, each with its replacement."""

LIST_ITEM = re.compile(r"^\s*(#{1,6}\s+|[-*+•]\s+|\d{1,2}[.)]\s+|>\s*)")
DESCRIBED_NAME = re.compile(r"^\s*\w+\s*(\([^)]*\))?\s*:\s")
"""A line of a parameter list: `limit (int): …`."""

TITLES = (
    r"args?|arguments?|param(?:eter)?s?|inputs?|outputs?|returns?|results?|response(?: format)?|raises?|throws|yields?|"
    r"examples?|example (?:usage|requests?|responses?|queries)|usage(?: examples?)?|notes?|important(?: notes?)?|"
    r"warnings?|see also|references?|best practices|tips|limitations?|errors?|syntax|options"
)
SECTION = re.compile(rf"^[#*\s]*(?:{TITLES})[*\s]*(?::.*|$)", re.IGNORECASE)
SECTION_INLINE = re.compile(
    r"(?<=[.!?。\s])(?:Args|Arguments|Param(?:eter)?s|Returns|Raises|Examples?|Inputs?|Outputs?|Usage|Response):.*"
)
END_OF_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=[^a-z\s])|(?<=[。！？])")
ABBREVIATED = re.compile(r"\b(e\.g|i\.e|etc|vs|approx|incl|[A-Z])\.$")


def sentences(description: str) -> list[str]:
    """The sentences of a description. Sections are included only if there is no other text.

    >>> sentences("**Find** flights. Returns JSON.\\n\\nArgs:\\n    origin: where from")
    ['Find flights.', 'Returns JSON.']
    """
    text = description[:LONGEST]
    for pattern, kept in MARKUP:
        text = pattern.sub(kept, text)
    lines = text.splitlines()
    paragraphs = [SECTION_INLINE.sub("", each) for each in _paragraphs(_outside_sections(lines))]
    return [sentence for each in paragraphs or _paragraphs(lines) for sentence in _split(each)]


def _outside_sections(lines: list[str]) -> Iterator[str]:
    """The lines outside sections. A section ends after a blank line, at an unindented line that is not a list item."""
    margin = min((_indent(line) for line in lines[1:] if line.strip()), default=0)
    inside = after_blank = False
    for line in lines:
        if SECTION.match(line):
            inside = True
        elif line.strip():
            listed = LIST_ITEM.match(line) or DESCRIBED_NAME.match(line)
            inside = inside and not (after_blank and _indent(line) <= margin and not listed)
        if not inside:
            yield line
        after_blank = not line.strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Consecutive lines joined into paragraphs; each list item is its own paragraph."""
    held: list[str] = []
    for line in lines:
        if held and (not line.strip() or LIST_ITEM.match(line)):
            yield " ".join(held)
            held = []
        held += LIST_ITEM.sub("", line).split()
    if held:
        yield " ".join(held)


def _split(paragraph: str) -> Iterator[str]:
    held = ""
    for piece in END_OF_SENTENCE.split(paragraph):
        held = f"{held} {piece}".strip()
        if held and not ABBREVIATED.search(held):
            yield held
            held = ""
    if held:
        yield held
