"""Every text in a definition, and its plain form as a model reads it."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from pegboard.model import Tool
from pegboard.trust.characters import INVISIBLE, SELECTORS, TAGS, tags_as_text
from pegboard.trust.findings import ScannedText

LONGEST_PLACE = 200
"""Maximum characters of a text's place; of a deeper place only the end is kept."""
SAYING = 2
"""Number of word breaks from which on a name may be a sentence: `send_all_messages`."""
LONGEST = 4_000
"""Characters read at a time; a longer text is read in parts."""
OVERLAP = 500
"""Characters by which parts overlap; no pattern is longer."""
ENCODED = re.compile(r"(?<![\w/+=])[A-Za-z0-9+/]{32,}={0,2}(?![\w/+=])")
PART = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
IN_PARTS = re.compile(r"[A-Za-z0-9+/]{8,}(?:[\s\"',|\\]{1,4}[A-Za-z0-9+/]{4,}={0,2}){1,40}")
"""base64 split by separators."""
SPLIT_NAME = re.compile(r"[_\-.]+|(?<=[a-z0-9])(?=[A-Z])")
BETWEEN = re.compile(r"[\s\"',|\\]+")
LOOK_ALIKES = str.maketrans("аеорсухіјѕԁոαορν", "aeopcyxijsdnaopv")
"""Cyrillic, Armenian and Greek letters that look like Latin ones."""


def texts(tool: Tool) -> Iterator[ScannedText]:
    """All strings of a tool's definition with their places, including names of parameters and other fields."""
    if tool.definition:
        yield from _of(tool.definition, "")
        return
    parts = {"name": tool.name, "title": tool.title, "description": tool.description}
    yield from _of(parts | {"inputSchema": tool.input_schema, "annotations": tool.annotations}, "")


def all_texts(value: Any, where: str = "") -> Iterator[ScannedText]:
    """Every text of a JSON value: the definition of a prompt or resource, or a result."""
    yield from _of(value, where)


def text(raw: str, where: str) -> Iterator[ScannedText]:
    """The text in parts, and texts that are base64-encoded in it."""
    for start in range(0, max(1, len(raw) - OVERLAP), LONGEST - OVERLAP):
        part = raw[start : start + LONGEST]
        yield ScannedText(where=where, raw=part, plain=plain(part))
        for found in ENCODED.finditer(part):
            yield from _encoded(found.group(), where)
        for found in IN_PARTS.finditer(part):
            yield from _encoded(BETWEEN.sub("", found.group()), where)


def plain(raw: str) -> str:
    """The text as a model reads it: compatibility forms and look-alikes unified, case folded, nothing invisible.

    >>> plain("Ig\\u200bnоre  PREVIOUS")
    'ignore previous'
    """
    if raw.isascii():
        return re.sub(r"[^\S\n]+", " ", raw.lower())
    seen = SELECTORS.sub("", TAGS.sub(tags_as_text, INVISIBLE.sub("", raw)))
    folded = unicodedata.normalize("NFKC", seen).casefold().translate(LOOK_ALIKES).replace("’", "'")
    return re.sub(r"[^\S\n]+", " ", folded)


def _of(value: Any, where: str) -> Iterator[ScannedText]:
    """The texts of a value at any depth, in document order. Iterative, so that depth cannot exhaust the stack."""
    waiting: list[tuple[Any, str]] = [(value, where)]
    while waiting:
        each, place = waiting.pop()
        if isinstance(each, str):
            yield from text(each, place)
        elif isinstance(each, dict):
            inside = [(str(key), _within(place, str(key)), part) for key, part in each.items()]
            for key, at, _ in inside:
                yield from _name(key, at)
            waiting += [(part, at) for _, at, part in reversed(inside)]
        elif isinstance(each, list | tuple):
            yield from _in_parts(each, place)
            waiting += [(part, f"{place}[{at}]") for at, part in reversed(list(enumerate(each)))]


def _within(place: str, key: str) -> str:
    """The place of a key, shortened to its end if it is very deep."""
    whole = f"{place}.{key}" if place else key
    return whole if len(whole) <= LONGEST_PLACE else f"…{whole[-LONGEST_PLACE:]}"


def _name(key: str, place: str) -> Iterator[ScannedText]:
    """A field name that is not an identifier, and the words of a name long enough to be a sentence."""
    words = SPLIT_NAME.sub(" ", key)
    if not key.isidentifier():
        yield from text(key, f"{place} (name)")
    if words.count(" ") >= SAYING:
        yield from text(f"{key}\n{words}", f"{place} (name)")


def _in_parts(values: list[Any] | tuple[Any, ...], place: str) -> Iterator[ScannedText]:
    """Text that is base64-encoded across the values of a list."""
    if len(values) > 1 and all(isinstance(each, str) and PART.fullmatch(each) for each in values):
        yield from _encoded("".join(values), place)


def _encoded(base64_text: str, where: str) -> Iterator[ScannedText]:
    if decoded := _decoded(base64_text):
        yield ScannedText(where=f"{where} (base64)", raw=decoded, plain=plain(decoded))


def _decoded(encoded: str) -> str:
    """The decoded text; empty if it is not printable text with blanks."""
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return decoded if " " in decoded and decoded.isprintable() else ""
