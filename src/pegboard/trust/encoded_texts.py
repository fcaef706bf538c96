"""Texts that stand in another one in an encoding that models read: base64, hexadecimal, escapes, ROT13, backwards.

Only what decodes to printable text with blanks counts, so that hashes, identifiers and keys are left alone.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

from pegboard.trust.needed_words import words_in

ENCODED = re.compile(r"(?<![\w/+=-])[\w/+-]{32,}={0,2}(?![\w/+=-])", re.ASCII)
"""base64, also in the alphabet for addresses (RFC 4648, section 5)."""
PART = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
BREAK = r"(?:[\s\"',|\\]{1,4}|[\s\"',|\\]{0,3}[-+.;:~]{1,2}[\s\"',|\\]{1,3})"
IN_PARTS = re.compile(rf"[A-Za-z0-9+/]{{8,}}(?:{BREAK}[A-Za-z0-9+/]{{4,}}={{0,2}}){{1,40}}")
"""base64 split by separators."""
BETWEEN = re.compile(BREAK)
CAPITAL, MOST_PER_CAPITAL = re.compile("[A-Z]"), 8
"""Of prose, fewer letters are capitals; of text in base64, more than a third."""
CAPITALS = re.compile("[A-Z][^A-Z]*[A-Z]")
"""As many as the shortest text in parts has at least."""
HEXADECIMAL = re.compile(r"(?<![0-9a-zA-Z])(?:0x)?((?:[2-7][0-9a-fA-F] ?){20,2000})(?![0-9a-zA-Z])")
"""Of ASCII alone: the first digit is 2 to 7."""
ESCAPED = re.compile(r"(?:\\u00[2-7][0-9a-fA-F]|\\x[2-7][0-9a-fA-F]|%[2-7][0-9a-fA-F]|&#x?[0-9a-fA-F]{2,5};){8,400}")
ESCAPE = re.compile(r"\\u00|\\x")
SHORTEST_ENCODED, SHORTEST_HEXADECIMAL, FEWEST_FIRST_DIGITS = 32, 40, 20
FIRST_DIGITS, ESCAPING = "234567", ("\\", "%", "&#")
"""What hexadecimal and escaped texts hold: a text without it is not searched for them."""
_TURNED = (
    "gur|naq|guvf|gung|lbh|lbhe|jvgu|sebz|orsber|hfre|gbby|svyr"
    "|zhfg|abg|jura|nyy|nal|pnyy|hfr|fraq|vagb|unir|jvyy|fubhyq|nyjnlf"
)
_REVERSED = (
    "eht|dna|siht|taht|uoy|ruoy|htiw|morf|erofeb|resu|loot|elif"
    "|tsum|ton|nehw|lla|yna|llac|esu|dnes|otni|evah|lliw|dluohs|syawla"
)
TURNED, REVERSED = (re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for words in (_TURNED, _REVERSED))
"""Common words in ROT13, and backwards; without some of them, nothing is read that way."""
ODD_WORDS = frozenset([*_TURNED.split("|"), *_REVERSED.split("|")])
FEWEST = 3


def decoded(text: str) -> Iterator[tuple[str, str]]:
    """Encodings and the texts that stand in a text in them."""
    if len(text) >= SHORTEST_ENCODED:
        for found in ENCODED.finditer(text):
            yield from from_base64(found.group())
    if CAPITALS.search(text):
        for found in IN_PARTS.finditer(text):
            joined = BETWEEN.sub("", found.group())
            if len(CAPITAL.findall(joined)) * MOST_PER_CAPITAL >= len(joined):
                yield from from_base64(joined)
    if len(text) >= SHORTEST_HEXADECIMAL and sum(map(text.count, FIRST_DIGITS)) >= FEWEST_FIRST_DIGITS:
        for found in HEXADECIMAL.finditer(text):
            yield from _readable("hexadecimal", bytes.fromhex(found.group(1)))
    if any(map(text.__contains__, ESCAPING)):
        for found in ESCAPED.finditer(text):
            plain = unquote(ESCAPE.sub("%", html.unescape(found.group())))
            yield from _readable("escapes", plain.encode())
    if not text.isascii() or words_in(text.lower()) & ODD_WORDS:  # beyond ASCII other letters may count as the same
        if len(set(TURNED.findall(text))) >= FEWEST:
            yield "rot13", codecs.encode(text, "rot13")
        if len(set(REVERSED.findall(text))) >= FEWEST:
            yield "backwards", text[::-1]


def from_base64(text: str) -> Iterator[tuple[str, str]]:
    """The decoded text, in either alphabet; nothing if it is no text."""
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        yield from _readable("base64", base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True))
    except binascii.Error:
        return


def _readable(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """As text, if it is printable and has blanks."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return
    if " " in text and text.isprintable():
        yield name, text
