"""Letters of other scripts that look like Latin ones: Unicode's table of confusable characters (UTS 39), as of Unicode 15.1.

Made from the data of `confusable-homoglyphs` 3.3.1: letters that compatibility forms do not unify already, without
ideographs. A word is read as Latin if that makes all of it Latin, so that words of other languages stay.
"""

from __future__ import annotations

import re

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
WORD = re.compile(r"[^\W_]*[^\W_\x00-\x7f][^\W_]*")
"""A word with a letter that is not ASCII."""


def unified(text: str) -> str:
    """The text with look-alikes as Latin letters, in words that are Latin then.

    >>> unified("ignоre аll, бар")
    'ignore all, бар'
    """
    return WORD.sub(_latin, text)


def _latin(word: re.Match[str]) -> str:
    read = word.group().translate(LATIN)
    return read if read.isascii() else word.group()
