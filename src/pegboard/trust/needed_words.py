"""Words that each match of a pattern must hold: a text without them is not searched, and most texts hold few.

They are read off the pattern: of a sequence every literal part, of alternatives one part of each. A match holds such a
part within one of the text's words, so looking the words up is enough.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

WORD = re.compile(r"\w+")
BETWEEN = re.compile(r"[\w\s]+")
SHORTEST = 3
"""Characters of a part in ASCII letters below which nearly every text holds it."""
MOST_WORDS = 20_000
"""Words that are remembered, and word sets."""
LONGEST_WORD = 40
"""Characters of a word that is remembered at most."""

FEW_TEXTS = 16
"""Texts whose words are remembered: several readers take them of the same text, one after the other."""

Alternatives = frozenset[str]
"""Texts one of which a match holds."""
REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}


def needs(pattern: re.Pattern[str]) -> tuple[Alternatives, ...]:
    """What each match of a pattern holds: of each group at least one.

    >>> [sorted(each) for each in needs(re.compile("(?:send|post) .{0,9}keys?"))]
    [['post', 'send'], ['key']]
    """
    return tuple(dict.fromkeys(_of(_parser.parse(pattern.pattern, pattern.flags), "")))


@lru_cache(maxsize=FEW_TEXTS)
def words_in(text: str) -> frozenset[str]:
    """The different words of a text: runs of letters, digits and underscores."""
    return frozenset(WORD.findall(text))


class PatternTable:
    """Which of many patterns may match a text. Any number of threads may use it at the same time."""

    def __init__(self, patterns: Iterable[re.Pattern[str]]) -> None:
        self._bits: dict[Alternatives, int] = {}
        self._masks = [
            sum({self._bits.setdefault(each, 1 << len(self._bits)) for each in needs(pattern)}) for pattern in patterns
        ]
        words: defaultdict[str, int] = defaultdict(int)
        marks: defaultdict[str, int] = defaultdict(int)
        for alternatives, bit in self._bits.items():
            for part in alternatives:
                (words if WORD.fullmatch(part) else marks)[part] |= bit
        self._long: dict[str, list[tuple[str, int]]] = {}
        """Parts of letters and digits, by their first characters."""
        for part, bits in words.items():
            if len(part) >= SHORTEST:
                self._long.setdefault(part[:SHORTEST], []).append((part, bits))
        short = [(part, bits) for part, bits in words.items() if len(part) < SHORTEST]
        self._short = short, [(part, bits) for part, bits in short if part.isascii()]
        self._marks = list(marks.items())
        self._known: dict[str, int] = {}
        self._idle: set[str] = set()
        """Words that hold no part: most."""
        self._possible: dict[int, int] = {}

    def possible(self, text: str) -> int:
        """A number with a bit for each pattern, by its place, that may match the text; the others do not."""
        held = 0
        for word in words_in(text) - self._idle:
            bits = self._known.get(word)
            held |= self._learnt(word) if bits is None else bits
        for mark, bits in self._marks:
            if mark in text:
                held |= bits
        found = self._possible.get(held)
        if found is None:
            found = sum(1 << place for place, mask in enumerate(self._masks) if held & mask == mask)
            if len(self._possible) >= MOST_WORDS:
                self._possible.clear()
            self._possible[held] = found
        return found

    def _learnt(self, word: str) -> int:
        bits = 0
        for begun in self._long.keys() & {word[at : at + SHORTEST] for at in range(len(word))}:
            for part, of_part in self._long[begun]:
                if part in word:
                    bits |= of_part
        for part, of_part in self._short[word.isascii()]:
            if part in word:
                bits |= of_part
        if len(word) <= LONGEST_WORD:
            if len(self._known) + len(self._idle) >= MOST_WORDS:
                self._known.clear()
                self._idle.clear()
            if bits:
                self._known[word] = bits
            else:
                self._idle.add(word)
        return bits


def _of(sequence: Iterable[tuple[Any, Any]], before: str) -> list[Alternatives]:
    """What each match of a parsed sequence holds; ``before``: the literal text that stands directly before it."""
    found: list[Alternatives] = []
    run = before
    for operation, given in sequence:
        if operation is _constants.LITERAL:
            run += chr(given)
            continue
        if operation is _constants.BRANCH:
            found += _of_branch(given[1], run)
            run = ""
            continue
        found += _parts(run)
        run = ""
        if operation is _constants.SUBPATTERN:
            found += _of(given[3], "")
        elif operation is _constants.ATOMIC_GROUP:
            found += _of(given, "")
        elif operation in REPEATS and given[0] > 0:
            found += _of(given[2], "")
    return found + _parts(run)


def _of_branch(branches: Sequence[Any], before: str) -> list[Alternatives]:
    """One part of each branch; nothing but the text before if one branch holds no literal."""
    inside = [_of(each, before) for each in branches]
    if all(inside):
        return [frozenset().union(*(max(each, key=_rarity) for each in inside))]
    return _parts(before)


def _rarity(alternatives: Alternatives) -> int:
    return min(len(each) if each.isascii() else 2 * SHORTEST for each in alternatives)


def _parts(run: str) -> list[Alternatives]:
    """The words of a literal text that are long enough; else its other characters, or its short words."""
    words = WORD.findall(run)
    long = [each for each in words if len(each) >= SHORTEST or not (each.isascii() and each.isalnum())]
    others = [each for each in BETWEEN.split(run) if each]
    return [frozenset([each]) for each in long or others or words]
