"""Every text of a definition, wherever it stands, and what is left of it when it is read as a model reads it."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from pegboard.model import Tool
from pegboard.trust.characters import INVISIBLE, SELECTORS, TAGS
from pegboard.trust.findings import Text

LONGEST_PLACE = 200
"""Characters of the place where a text stands: what is deeper is named by the end of it."""
SAYING = 2
"""Blanks between the words of a name from which on it may be a sentence: `send_all_messages`."""
LONGEST = 4_000
"""Characters that are read at once: a longer text is read in parts."""
OVERLAP = 500
"""Characters that a part has in common with the one before: no pattern is longer."""
ENCODED = re.compile(r"(?<![\w/+=])[A-Za-z0-9+/]{32,}={0,2}(?![\w/+=])")
PART = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
IN_PARTS = re.compile(r"[A-Za-z0-9+/]{8,}(?:[\s\"',|\\]{1,4}[A-Za-z0-9+/]{4,}={0,2}){1,40}")
"""base64 with something between its parts."""
SPLIT_NAME = re.compile(r"[_\-.]+|(?<=[a-z0-9])(?=[A-Z])")
BETWEEN = re.compile(r"[\s\"',|\\]+")
LOOK_ALIKES = str.maketrans("аеорсухіјѕԁոαορν", "aeopcyxijsdnaopv")
"""Cyrillic, Armenian and Greek letters that are drawn as Latin ones."""


def texts(tool: Tool) -> Iterator[Text]:
    """Of a tool: all its definition's strings, names of parameters and of other fields too, with their places."""
    if tool.definition:
        yield from _of(tool.definition, "")
        return
    parts = {"name": tool.name, "title": tool.title, "description": tool.description}
    yield from _of(parts | {"inputSchema": tool.input_schema, "annotations": tool.annotations}, "")


def all_texts(value: Any, where: str = "") -> Iterator[Text]:
    """Every text of a value as JSON has it: the definition of a prompt or a resource, or a result."""
    yield from _of(value, where)


def text(raw: str, where: str) -> Iterator[Text]:
    """The text, and what is encoded in it."""
    for start in range(0, max(1, len(raw) - OVERLAP), LONGEST - OVERLAP):
        part = raw[start : start + LONGEST]
        yield Text(where=where, raw=part, plain=plain(part))
        for found in ENCODED.finditer(part):
            yield from _encoded(found.group(), where)
        for found in IN_PARTS.finditer(part):
            yield from _encoded(BETWEEN.sub("", found.group()), where)


def plain(raw: str) -> str:
    """As a model reads it: compatibility forms and look-alikes made one, case folded, nothing invisible.

    >>> plain("Ig\\u200bnоre  PREVIOUS")
    'ignore previous'
    """
    seen = SELECTORS.sub("", TAGS.sub(_tags_as_text, INVISIBLE.sub("", raw)))
    folded = unicodedata.normalize("NFKC", seen).casefold().translate(LOOK_ALIKES).replace("’", "'")
    return re.sub(r"[^\S\n]+", " ", folded)


def _of(value: Any, where: str) -> Iterator[Text]:
    """At any depth, in the order in which it is written. What is left to read waits in a list, and not on the stack."""
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
    """The place of a key; of a very deep one its end."""
    whole = f"{place}.{key}" if place else key
    return whole if len(whole) <= LONGEST_PLACE else f"…{whole[-LONGEST_PLACE:]}"


def _name(key: str, place: str) -> Iterator[Text]:
    """A name is read as it stands, and as the words it is made of where it says more than a name has to."""
    words = SPLIT_NAME.sub(" ", key)
    if not key.isidentifier():
        yield from text(key, f"{place} (name)")
    if words.count(" ") >= SAYING:
        yield from text(f"{key}\n{words}", f"{place} (name)")


def _in_parts(values: list[Any] | tuple[Any, ...], place: str) -> Iterator[Text]:
    """What is encoded in the values of a list together."""
    if len(values) > 1 and all(isinstance(each, str) and PART.fullmatch(each) for each in values):
        yield from _encoded("".join(values), place)


def _encoded(base64_text: str, where: str) -> Iterator[Text]:
    if decoded := _decoded(base64_text):
        yield Text(where=f"{where} (base64)", raw=decoded, plain=plain(decoded))


def _tags_as_text(found: re.Match[str]) -> str:
    return "".join(chr(ord(each) - 0xE0000) for each in found.group() if 0xE0020 <= ord(each) < 0xE007F)


def _decoded(encoded: str) -> str:
    """What base64 stands for, where that is text; else nothing."""
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return decoded if " " in decoded and decoded.isprintable() else ""
