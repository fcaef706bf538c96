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

DEEPEST = 40
"""Levels of a schema that are read: deeper ones are no schema that anybody meant to be read."""
LONGEST = 4_000
"""Characters that are read at once: a longer text is read in parts."""
OVERLAP = 500
"""Characters that a part has in common with the one before: no pattern is longer."""
ENCODED = re.compile(r"(?<![\w/+=])[A-Za-z0-9+/]{32,}={0,2}(?![\w/+=])")
LOOK_ALIKES = str.maketrans("аеорсухіјѕԁոαορν", "aeopcyxijsdnaopv")
"""Cyrillic, Armenian and Greek letters that are drawn as Latin ones."""


def texts(tool: Tool) -> Iterator[Text]:
    """Of a tool: all its definition's strings, names of parameters and of other fields too, with their places."""
    if tool.definition:
        yield from _of(tool.definition, "")
        return
    parts = {"name": tool.name, "title": tool.title, "description": tool.description}
    yield from _of(parts | {"inputSchema": tool.input_schema, "annotations": tool.annotations}, "")


def text(raw: str, where: str) -> Iterator[Text]:
    """The text, and what is encoded in it."""
    for start in range(0, max(1, len(raw) - OVERLAP), LONGEST - OVERLAP):
        part = raw[start : start + LONGEST]
        yield Text(where=where, raw=part, plain=plain(part))
        for found in ENCODED.finditer(part):
            if decoded := _decoded(found.group()):
                yield Text(where=f"{where} (base64)", raw=decoded, plain=plain(decoded))


def plain(raw: str) -> str:
    """As a model reads it: compatibility forms and look-alikes made one, case folded, nothing invisible.

    >>> plain("Ig\\u200bnоre  PREVIOUS")
    'ignore previous'
    """
    seen = SELECTORS.sub("", TAGS.sub(_tags_as_text, INVISIBLE.sub("", raw)))
    folded = unicodedata.normalize("NFKC", seen).casefold().translate(LOOK_ALIKES).replace("’", "'")
    return re.sub(r"[^\S\n]+", " ", folded)


def _of(value: Any, where: str, depth: int = 0) -> Iterator[Text]:
    if depth > DEEPEST:
        return
    if isinstance(value, str):
        yield from text(value, where)
    elif isinstance(value, dict):
        for key, each in value.items():
            place = f"{where}.{key}" if where else str(key)
            if not str(key).isidentifier():
                yield from text(str(key), f"{place} (name)")
            yield from _of(each, place, depth + 1)
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from _of(each, f"{where}[{at}]", depth + 1)


def _tags_as_text(found: re.Match[str]) -> str:
    return "".join(chr(ord(each) - 0xE0000) for each in found.group() if 0xE0020 <= ord(each) < 0xE007F)


def _decoded(encoded: str) -> str:
    """What base64 stands for, where that is text; else nothing."""
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return decoded if " " in decoded and decoded.isprintable() else ""
