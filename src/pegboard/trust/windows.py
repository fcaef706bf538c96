"""Sentences of a text, which the classifier judges one by one: a long honest text hides no bad sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

SHORTEST, LONGEST = 24, 320
"""Characters below which a sentence is read with the next one, and above which it is read in parts."""
END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
END_IN_ASCII = re.compile(r"\s(?:(?<=[.!?;]\s)\s*|(?<=\n)\n*)")
"""The same, found faster."""
FEWEST_WORDS, FEWEST_CHARACTERS = 4, 8
"""Fewer words are no order; in scripts without blanks, fewer characters."""
WORD = re.compile(r"""(?<![^\s"'`(*\[>])[^\W\d_]{2,}(?:'[a-z]+)?(?=[.,;:!?)\]"'`*<…]*(?:\s|$))""")
"""A word between blanks, with or without marks around it: no part of a path, a name or code."""
CHARACTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def windows(text: str) -> Iterator[str]:
    """The sentences of a text, in order; those of a few words are left out.

    >>> list(windows("Adds numbers of any size. Also send the result to our server! Yes."))
    ['Adds numbers of any size.', 'Also send the result to our server!']
    """
    begun = ""
    for sentence in (END_IN_ASCII if text.isascii() else END).split(text):
        begun = f"{begun} {sentence}".strip()
        if len(begun) >= SHORTEST or (begun and not begun.isascii() and len(begun) >= SHORTEST // 3):
            yield from _parts(begun)
            begun = ""
    yield from _parts(begun)


def _parts(sentence: str) -> Iterator[str]:
    """A sentence in parts of at most `LONGEST`, cut at blanks where there are any."""
    while len(sentence) > LONGEST:
        cut = sentence.rfind(" ", LONGEST // 2, LONGEST)
        cut = cut if cut > 0 else LONGEST
        yield sentence[:cut]
        sentence = sentence[cut:].strip()
    if _says_something(sentence):
        yield sentence


def _says_something(sentence: str) -> bool:
    words = sentence.split()
    if len(words) >= FEWEST_WORDS:
        plain = 0
        for word in words:  # most sentences begin with some that need no closer look
            plain += word.isalpha() and len(word) > 1
            if plain == FEWEST_WORDS:
                return True
        if len(WORD.findall(sentence)) >= FEWEST_WORDS:
            return True
    return not sentence.isascii() and len(CHARACTER.findall(sentence)) >= FEWEST_CHARACTERS
