"""Texts with digits for letters, or written letter by letter, as they are meant to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

LEET = str.maketrans("013457@$", "oieastas")
LEETED = re.compile(r"(?<![\w@$])(?=[\w@$]*[a-z])(?=[\w@$]*[013457@$])[a-z013457@$]{3,20}(?![\w@$])")
"""A word of letters and of digits that look like letters."""
FEWEST = 2
"""Such words from which on a text is read so; one of them is often a version or a code."""
SPACED = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-*_|]{1,4}[^\W_]){7,400}(?![^\W_])")
BETWEEN_WORDS = re.compile(r"[ .\-*_|]{2,}")


def undisguised(text: str) -> Iterator[tuple[str, str]]:
    """Disguises, and how the text reads without them; ``text`` is plain (`definition_texts.plain`)."""
    if len(LEETED.findall(text)) >= FEWEST:
        yield "digits for letters", LEETED.sub(lambda word: word.group().translate(LEET), text)
    for run in SPACED.finditer(text):
        words = ["".join(filter(str.isalnum, word)) for word in BETWEEN_WORDS.split(run.group())]
        yield "letter by letter", " ".join(words)
