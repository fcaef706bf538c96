"""Texts with digits for letters, or written letter by letter, as they are meant to be read."""

from __future__ import annotations

import re
from collections.abc import Iterator

LEET = str.maketrans("013457@$", "oieastas")
LEETED = re.compile(r"(?<![\w@$])(?=[\w@$]*[a-z])(?=[\w@$]*[013457@$])[a-z013457@$]{3,20}(?![\w@$])")
"""A word of letters and of digits that look like letters."""
LEET_MARK = re.compile("[013457@$]")
FEWEST = 2
"""Such words from which on a text is read so; one of them is often a version or a code."""
MANY = 6
"""Such words from which on a text is read so in whole: words of one or two characters, and numbers, too."""
SHORT = re.compile(r"(?<![\w@$])[a-z013457@$]{1,2}(?![\w@$])")
SPACED = re.compile(r"(?<![^\s.\-*_|])[^\s.\-*_|](?:[ \t.\-*_|]{1,8}[^\s.\-*_|]){7,2000}(?![^\s.\-*_|])")
FEWEST_LETTERS = 8
SHORTEST_SPACED = 15
SPLIT = re.compile(
    r"""(?<=\w)(?:["']\s?[+.]\s?["']|\*\*|`|~~|</?[a-z]{1,6}>|[\u00b7\u2022\u2027]|\[\]|\{\}|\\)(?=\w)|(?<=[a-z])[-.|](?=[a-z])"""
)
"""What parts a word within: quotes with a plus, emphasis, tags, marks."""
MANY_SPLITS, WORDS_PER_SPLIT = 5, 3
_SPLITTING = r"""["'*`~<\u00b7\u2022\u2027\[{\\\-.|]"""
MARKS_OF_SPLITS = re.compile(rf"(?:[^{_SPLITTING[1:-1]}]*+{_SPLITTING}){{{MANY_SPLITS}}}")
"""A text without as many of these marks is not split."""
BETWEEN_LETTERS = re.compile(r"[ \t.\-*_|]")
BETWEEN_WORDS = re.compile(r"[ \t.\-*_|]{2,}")


def undisguised(text: str) -> Iterator[tuple[str, str]]:
    """Disguises, and how the text reads without them; ``text`` is in lower case, with its blanks as they are."""
    if (leeted := leeted_words(text)) >= FEWEST:
        read = LEETED.sub(_letters, text)
        yield "digits for letters", SHORT.sub(_letters, read) if leeted >= MANY else read
    if MARKS_OF_SPLITS.match(text):
        joined, splits = SPLIT.subn("", text)
        if splits >= MANY_SPLITS and splits * WORDS_PER_SPLIT >= joined.count(" "):
            yield "split words", joined
    for run in spaced(text):
        words = ["".join(BETWEEN_LETTERS.split(word)) for word in BETWEEN_WORDS.split(run.group())]
        if sum(map(str.isalpha, run.group())) >= FEWEST_LETTERS:
            yield "letter by letter", " ".join(words)


def leeted_words(text: str) -> int:
    """How many words have digits for letters."""
    return len(LEETED.findall(text)) if LEET_MARK.search(text) else 0


def spaced(text: str) -> Iterator[re.Match[str]]:
    """What is written letter by letter."""
    return SPACED.finditer(text) if len(text) >= SHORTEST_SPACED else iter(())


def _letters(word: re.Match[str]) -> str:
    return word.group().translate(LEET)
