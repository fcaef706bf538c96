"""Corrects misspelt words of a search to words of a catalog."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from copy import copy
from functools import cache
from importlib.resources import files

from pegboard.model import Tool
from pegboard.retrieval.words import CAMEL, FUNCTION_WORDS, raw_words, stem

WORD = re.compile(r"[A-Za-z]{3,30}")
SHORT = 4
"""Words up to this length are corrected to words of names only."""
LONG = 9
"""From this length on, a word may have two errors."""
LEAST_LETTERS = 3
"""Abbreviations of so many letters are never what another word stands for: `aws` is not `aks`."""
OF_NAMES = 100
"""A word of a name outweighs one that occurs in this many descriptions."""
MOST_UNKNOWN = 30
"""Different words that a query may have and the catalog does not; a query with more is a text about something else.
Each is compared with hundreds of words while everybody waits."""
LEAST_USES = 2
"""Descriptions that a word has to occur in, so that it is not an error itself."""


class Speller:
    """The words of one catalog, and the correction of a query to them.

    A word that the catalog has stays. One that only the vocabulary of the package's encoder has is corrected beside a
    word that neither has: `crate isue` is `create issue`, but `recipe` alone never becomes `receive`.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._weights: Counter[str] = Counter()
        self._stems: Counter[str] = Counter()
        """How many words have a stem."""
        self._by_letter: dict[str, dict[str, int]] = {}
        self._change((), tools)

    def changed(self, gone: Iterable[Tool], new: Iterable[Tool]) -> Speller:
        """The words of the catalog from which tools went and to which others came."""
        other = copy(self)
        other._weights, other._stems, other._by_letter = self._weights.copy(), self._stems.copy(), {**self._by_letter}
        other._change(gone, new)
        return other

    def _change(self, gone: Iterable[Tool], new: Iterable[Tool]) -> None:
        more: Counter[str] = Counter()
        for tool in new:
            more.update(_weights(tool))
        for tool in gone:
            more.subtract(_weights(tool))
        own: set[str] = set()
        for word, added in more.items():
            before = self._weights[word]
            after = before + added
            if before and not after:
                del self._weights[word]
            elif after:
                self._weights[word] = after
            self._stems[stem(word)] += (after > 0) - (before > 0)
            if WORD.fullmatch(word):
                letter = word[0]
                if letter not in own:
                    own.add(letter)
                    self._by_letter[letter] = dict(self._by_letter.get(letter, {}))
                if after >= LEAST_USES:
                    self._by_letter[letter][word] = after
                else:
                    self._by_letter[letter].pop(word, None)

    def corrected(self, query: str) -> str:
        """The query, unchanged but for misspelt words, and names that the catalog has without capitals: `GitHub`. One
        with more than `MOST_UNKNOWN` words that the catalog does not have is unchanged.

        >>> from pegboard.testing import fake_tool
        >>> Speller([fake_tool("list_issues")]).corrected("list isues for my recipe")
        'list issues for my recipe'
        """
        named = WORD.sub(lambda match: self._name(match.group()), query)
        pieces = _kept_apart(named)
        unknown = {word for word in map(str.casefold, WORD.findall(" ".join(pieces))) if self._is_unknown(word)}
        if len(unknown) > MOST_UNKNOWN:
            return query
        meant = {word: self._meant(word) for word in unknown if not _is_common(word)}
        if any(meant.values()):  # the writer is known to misspell
            meant |= {word: self._meant(word) for word in unknown - meant.keys()}
        return "".join(
            WORD.sub(lambda match: meant.get(match.group().casefold()) or match.group(), piece) for piece in pieces
        )

    def _name(self, written: str) -> str:
        name = written.casefold()
        return name if CAMEL.search(written) and name in self._weights else written

    def _is_unknown(self, word: str) -> bool:
        return word not in FUNCTION_WORDS and not self._stems[stem(word)]

    def _meant(self, word: str) -> str | None:
        """The word of the catalog that an unknown word is a misspelling of; None if there is none."""
        errors = 2 if len(word) >= LONG else 1
        near = [
            (distance, -weight, known)
            for known, weight in self._by_letter.get(word[0], {}).items()
            if len(known) > LEAST_LETTERS
            and abs(len(known) - len(word)) <= errors
            and (len(word) > SHORT or weight >= OF_NAMES)
            and (distance := edits(word, known, errors)) <= errors
        ]
        return min(near)[2] if near else None


def _weights(tool: Tool) -> Counter[str]:
    weights = Counter(dict.fromkeys([*raw_words(tool.name), *raw_words(tool.server)], OF_NAMES))
    weights.update(set(raw_words(tool.description)))
    return weights


def edits(one: str, other: str, most: int) -> int:
    """The number of letters to insert, remove, replace or swap with a neighbour; ``most + 1`` for any larger number.

    Optimal string alignment (Damerau 1964, restricted).

    >>> edits("agregate", "aggregate", 2), edits("chrat", "chart", 1), edits("pizza", "issue", 1)
    (1, 1, 2)
    """
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        last, before, row = before, row, [place]
        for at, wanted in enumerate(other, 1):
            cost = min(before[at] + 1, row[at - 1] + 1, before[at - 1] + (letter != wanted))
            if place > 1 and at > 1 and letter == other[at - 2] and one[place - 2] == wanted:
                cost = min(cost, last[at - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


@cache
def common_words() -> frozenset[str]:
    """Words that the encoder of the package knows as a whole."""
    text = (files("pegboard.retrieval.encoders.minilm") / "tokenizer.json").read_text("utf-8")
    return frozenset(word for word in json.loads(text)["model"]["vocab"] if word.isalpha())


def _is_common(word: str) -> bool:
    return word in common_words() or word.removesuffix("s") in common_words()


def _kept_apart(query: str) -> list[str]:
    """The pieces of a query between which words of identifiers end: `mergeReqest`, `merge_reqest`."""
    return CAMEL.sub("\0", query).split("\0")
