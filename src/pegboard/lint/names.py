"""Rules on names: what an agent can tell from a tool's name alone."""

from __future__ import annotations

import re

from pegboard.lint.findings import Finding, Limits, Subject
from pegboard.retrieval.name_words import GENERIC, LEADING_VERBS, VERBS, Word, words_of

VOWEL = re.compile(r"[aeiouy]")
FEWEST_LETTERS = 3
"""Letters from which on a word with a vowel can be read as one."""
KNOWN = frozenset(
    re.findall(r"\w+", "api css csv db dns html http https ip js json pdf sql ssh ssl tld txt ui url xml")
)
"""Short forms that everybody who asks for such a tool would use."""

SAY_WHAT = "Name the action and its object in full words, as in `create_invoice`."


def cryptic_name(subject: Subject, limits: Limits) -> Finding | None:
    """No word of the name can be read, those of the server's name set aside."""
    words = words_of(subject.tool.name)
    of_server = {word.stem for word in words_of(subject.tool.server) if word.text not in LEADING_VERBS}
    own = [word for word in words if word.stem not in of_server] or words
    if any(_legible(word.text) for word in own):
        return None
    return subject.finding("cryptic-name", f"{subject.tool.name!r} holds no word that says what it does.", SAY_WHAT)


def vague_name(subject: Subject, limits: Limits) -> Finding | None:
    """The name says what is done and not to what; the server's name does not count, for many clients drop it."""
    words = words_of(subject.tool.name)
    if not words or not _says_no_object(words[0]) or any(word.names_something for word in words[1:]):
        return None
    return subject.finding("vague-name", f"{subject.tool.name!r} does not say to what it is done.", SAY_WHAT)


def _legible(word: str) -> bool:
    return not word.isascii() or word in KNOWN or (len(word) >= FEWEST_LETTERS and bool(VOWEL.search(word)))


def _says_no_object(word: Word) -> bool:
    return word.text in VERBS or word.text in GENERIC
