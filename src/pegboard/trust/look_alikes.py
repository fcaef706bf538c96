"""Letters of other scripts that look like Latin ones: Unicode's table of confusable characters (UTS 39), as of Unicode 15.1.

Made from the data of `confusable-homoglyphs` 3.3.1: letters that compatibility forms do not unify already, without
ideographs. A word is read as Latin if that makes all of it Latin, so that words of other languages stay.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# ruff: noqa: E501
LOOKING_LIKE = {
    "a": "ɑαаᎪᗅ\U000102a0\U00016f40",
    "b": "ƅβвьᏏᏴᑲᖯᗷ\U00010282\U000102a1\U00010301",
    "c": "σсᏟᴄⲥ\U000102a2\U00010302\U0001043d\U0001051c",
    "d": "ԁᎠᏧᑯᗞᗪ",
    "e": "εеҽᎬⴹ\U00010286\U000118c6\U000118ce",
    "f": "ϝքᖴẝ\U00010287\U000102a5\U00010525\U000118c2",
    "g": "ƍɡԍցᏀᏳᶃ",
    "h": "ηнһհᎻᏂᕼⲏ\U000102cf",
    "i": "ıɩɪιіӏᎥ\U000118c3",
    "j": "ʝϳјᎫᒍ",
    "k": "κкᏦᛕⲕ\U00010518",
    "l": "ǀᏞᒪᛁⲓⳑⵏ\U0001028a\U00010309\U00010443\U00010526\U000118d2\U00016f16\U00016f28",
    "m": "μϻмᎷᗰᛖⲙ\U000102b0\U00010311",
    "n": "ոռⲛ\U00010513",
    "o": "οоօଠഠဝჿዐᴏᴑⲟⵔ\U00010292\U000102ab\U0001042c\U000104ea\U00010516\U000118c8\U000118d5\U000118d7",
    "p": "ρрᏢᑭⲣ\U00010295",
    "q": "ԛգզⵕ",
    "r": "ʀгᎡᎱᏒᖇᴦⲅ\U000104dc\U00016f35",
    "s": "ƽѕտᏕᏚ\U00010296\U00010448\U000118c1\U00016f3a",
    "t": "τтᎢⲧ\U00010297\U000102b1\U00010315\U000118dc\U00016f0a",
    "u": "ʋυսሀᑌᴜ\U000104f6\U000118d8\U00016f42",
    "v": "νѵᏙᐯᴠⴸ\U0001051d\U00011706\U000118c0\U00016f08",
    "w": "ɯѡԝաᎳᏔᴡ\U0001170a\U0001170e\U0001170f",
    "x": "χхᕁᕽᚷⲭⵝ\U00010290\U000102b4\U00010317\U00010527",
    "y": "ɣʏγуүყᎩᎽᶌỿⲩ\U000102b2\U000118c4\U00016f43",
    "z": "ζᏃᴢ\U000118c9",
}
LATIN = str.maketrans({like: letter for letter, others in LOOKING_LIKE.items() for like in others})
PLANES = range(0x300, 0x20000)
"""Where combining marks are, but for variation selectors."""
MARKS = ("Mn", "Me", "Mc")
"""Categories of marks on letters, around them and beside them."""


def unified(text: str) -> str:
    """The text with look-alikes as Latin letters and without marks on letters, in words that are Latin then.

    >>> unified("ignоre аll, бар, i\u0336gn\u00f3re")
    'ignore all, бар, ignore'
    """
    return _words().sub(_latin, text)


@cache
def _words() -> re.Pattern[str]:
    """Words with a letter that is not ASCII, or with a mark on a letter."""
    marks, begun = [each for each in PLANES if unicodedata.category(chr(each)) in MARKS], 0
    ranges = ""
    for at, mark in enumerate(marks):
        if marks[at + 1 : at + 2] != [mark + 1]:
            ranges += f"{chr(marks[begun])}-{chr(mark)}"
            begun = at + 1
    letter = r"[^\W_\x00-\x7f]"
    return re.compile(rf"(?<![^\W_])[A-Za-z0-9]*+(?:{letter}|(?<=[^\W_])[{ranges}])(?:[^\W_]|[{ranges}])*")


def _latin(word: re.Match[str]) -> str:
    apart = unicodedata.normalize("NFD", word.group())
    bare = "".join(each for each in apart if unicodedata.category(each) not in MARKS)
    read = bare.translate(LATIN)
    return read if read.isascii() else word.group()
