"""Every text in a definition, and its plain form as a model reads it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pegboard.model import Tool
from pegboard.trust.characters import SELECTORS, TAGS, UNSEEN, tags_as_text
from pegboard.trust.disguises import undisguised
from pegboard.trust.encoded_texts import PART, decoded
from pegboard.trust.findings import HINTS, NAME, ScannedText
from pegboard.trust.look_alikes import unified

LONGEST_PLACE = 200
"""Maximum characters of a text's place; of a deeper place only the end is kept."""
LONGEST_WORD = 16
SAYING = 2
"""Number of word breaks from which on a name may be a sentence: `send_all_messages`."""
LONGEST = 4_000
"""Characters read at a time; a longer text is read in parts."""
OVERLAP = 500
"""Characters by which parts overlap; no pattern is longer."""
BLANKS = re.compile(r"[^\S\n]{2,}|[^\S\n ]")
"""What one blank stands for: several, or another."""
OF_HINTS = HINTS.removesuffix(".")
SPLIT_NAME = re.compile(r"[_\-.]+|(?<=[a-z0-9])(?=[A-Z])")


class PlacedText(NamedTuple):
    """A string of a definition, as it arrived, and its place."""

    where: str
    raw: str


def said_by(tool: Tool) -> Iterator[PlacedText]:
    """All strings of a tool's definition, including names of parameters and other fields."""
    if tool.definition:
        return said_in(tool.definition)
    parts = {"name": tool.name, "title": tool.title, "description": tool.description}
    return said_in(parts | {"inputSchema": tool.input_schema, "annotations": tool.annotations})


def texts(tool: Tool) -> Iterator[ScannedText]:
    """All strings of a tool's definition as texts to scan."""
    for each in said_by(tool):
        yield from text(each.raw, each.where)


def all_texts(value: Any) -> Iterator[ScannedText]:
    """The same of any JSON value: the definition of a prompt or resource, or a result."""
    for each in said_in(value):
        yield from text(each.raw, each.where)


def text(raw: str, where: str) -> Iterator[ScannedText]:
    """The text in parts, and texts that stand in it in an encoding."""
    for start in range(0, max(1, len(raw) - OVERLAP), LONGEST - OVERLAP):
        part = raw[start : start + LONGEST]
        read = folded(part)
        yield ScannedText(where=where, raw=part, plain=BLANKS.sub(" ", read))
        yield from _decoded(decoded(part), where)
        yield from _decoded(undisguised(read), where)


def plain(raw: str) -> str:
    """The text as a model reads it: compatibility forms and look-alikes unified, case folded, nothing invisible, and
    Latin letters without marks.

    >>> plain("Ig\\u200bnоre  PREVIOUS")
    'ignore previous'
    """
    return BLANKS.sub(" ", folded(raw))


def folded(raw: str) -> str:
    """The same, with blanks as they are: they part words that are written letter by letter."""
    if raw.isascii():
        return raw.lower()
    seen = SELECTORS.sub("", TAGS.sub(tags_as_text, UNSEEN.sub("", raw)))
    small = unicodedata.normalize("NFKC", seen).casefold().replace("’", "'")
    return small if small.isascii() else unified(small)


def said_in(value: Any) -> Iterator[PlacedText]:
    """The strings of a JSON value at any depth, in document order. Iterative, so that no depth exhausts the stack."""
    waiting: list[tuple[Any, str]] = [(value, "")]
    while waiting:
        each, place = waiting.pop()
        if isinstance(each, str):
            if not _is_word(each):
                yield PlacedText(place, each)
        elif isinstance(each, dict):
            hinted = place.startswith(OF_HINTS)
            for key in map(str, each):
                if hinted or not key.islower() or not key.isidentifier() or key.count("_") >= SAYING:  # else few words
                    yield from _name(key, _within(place, key))
            waiting += [
                (part, _within(place, str(key)))
                for key, part in reversed(each.items())
                if (not _is_word(part) if isinstance(part, str) else isinstance(part, dict | list | tuple))
            ]
        elif isinstance(each, list | tuple):
            if len(each) > 1 and all(isinstance(part, str) and PART.fullmatch(part) for part in each):
                yield PlacedText(place, "".join(each))  # base64 in parts, perhaps
            waiting += [(part, f"{place}[{at}]") for at, part in reversed(list(enumerate(each)))]


def _is_word(text: str) -> bool:
    """Whether it is one short word or number, such as the name of a type: most strings of a schema. It can be no order.

    >>> [_is_word(text) for text in ("string", "100", "ssh key", "nаme")]
    [True, True, False, False]
    """
    return len(text) <= LONGEST_WORD and text.isalnum() and text.isascii()


def _within(place: str, key: str) -> str:
    """The place of a key, shortened to its end if it is very deep."""
    whole = f"{place}.{key}" if place else key
    return whole if len(whole) <= LONGEST_PLACE else f"…{whole[-LONGEST_PLACE:]}"


def _name(key: str, place: str) -> Iterator[PlacedText]:
    """A field name that is not an identifier, and the words of a name long enough to be a sentence, or of a hint."""
    words = SPLIT_NAME.sub(" ", key)
    if not key.isidentifier():
        yield PlacedText(f"{place}{NAME}", key)
    if words.count(" ") >= SAYING or place.startswith(HINTS):
        yield PlacedText(f"{place}{NAME}", f"{key}\n{words}")


def _decoded(found: Iterable[tuple[str, str]], where: str) -> Iterator[ScannedText]:
    for encoding, read in found:
        yield ScannedText(where=f"{where} ({encoding})", raw=read, plain=plain(read), disguise=encoding)
