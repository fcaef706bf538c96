"""Finds what a request says where a service would be named: "add a page in notion", "with google maps, find a bakery".

An ordinary word names a service there even in lower case, if it is the whole name of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pegboard.retrieval.words import FUNCTION_WORDS, raw_words

PLACED = re.compile(
    r"\b(?:via|using|use|with|through|(?:in|on)(?!\s+time\b))\s+"  # "on time" names no service
    r"((?:[\w@.-]{1,80}\s+){0,3}?[\w@-]{1,80})"
    r"(?=\s*(?:[.,;:!?)\]]|$)|\s+(?:and|or|for|to|then|so|please)\b)",
    re.IGNORECASE,
)
"""Up to four words between a preposition and the end of a phrase."""


def placed_names(text: str) -> Iterator[frozenset[str]]:
    """The words of each place, lower case, in the order of the text. With an article they are about a thing.

    >>> [sorted(words) for words in placed_names("Add a page in notion, with google maps for the way")]
    [['notion'], ['google', 'maps']]
    >>> list(placed_names("Which tables are in the database? It must be there on time."))
    []
    """
    for match in PLACED.finditer(text):
        words = frozenset(raw_words(match.group(1)))
        if not words & FUNCTION_WORDS:
            yield words
