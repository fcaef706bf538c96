"""Corrects misspelt words of a search to words of a catalog."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cache
from importlib.resources import files

from pegboard.model import Tool, ToolId
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

ToolIds = tuple[ToolId, ...]
Seen = frozenset[ToolId] | None
"""The tools that a caller may see; None for all."""


class Speller:
    """The words of one catalog, and the correction of a query to them.

    A word that the catalog has stays. One that only the vocabulary of the package's encoder has is corrected beside a
    word that neither has: `crate isue` is `create issue`, but `recipe` alone never becomes `receive`.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._named: dict[str, ToolIds] = {}
        """By word: the tools with it in their names, or in those of their servers."""
        self._told: dict[str, ToolIds] = {}
        """By word: the tools with it in their descriptions."""
        self._stems: dict[str, tuple[str, ...]] = {}
        """The words that have a stem."""
        self._by_letter: dict[str, dict[str, int]] = {}
        self._change((), list(tools))

    def changed(self, gone: Sequence[Tool], new: Sequence[Tool]) -> Speller:
        """The words of the catalog from which tools went and to which others came."""
        other = copy(self)
        other._named, other._told = self._named.copy(), self._told.copy()
        other._stems, other._by_letter = self._stems.copy(), self._by_letter.copy()
        other._change(gone, new)
        return other

    def _change(self, gone: Sequence[Tool], new: Sequence[Tool]) -> None:
        of_names = _exchange(self._named, _by_word(gone, _name_words), _by_word(new, _name_words))
        of_descriptions = _exchange(self._told, _by_word(gone, _description_words), _by_word(new, _description_words))
        own: set[str] = set()
        for word in of_names | of_descriptions:
            weight, root = self._weight(word), stem(word)
            alike = tuple(each for each in self._stems.pop(root, ()) if each != word)
            if weight or alike:
                self._stems[root] = (*alike, word) if weight else alike
            if WORD.fullmatch(word):
                letter = word[0]
                if letter not in own:
                    own.add(letter)
                    self._by_letter[letter] = dict(self._by_letter.get(letter, {}))
                if weight >= LEAST_USES:
                    self._by_letter[letter][word] = weight
                else:
                    self._by_letter[letter].pop(word, None)

    def corrected(self, query: str, seen: Seen = None) -> str:
        """The query, unchanged but for misspelt words, and names that the catalog has without capitals: `GitHub`. One
        with more than `MOST_UNKNOWN` words that the catalog does not have is unchanged. With ``seen``, the catalog is
        these tools of it alone.

        >>> from pegboard.testing import fake_tool
        >>> Speller([fake_tool("list_issues")]).corrected("list isues for my recipe")
        'list issues for my recipe'
        """
        named = WORD.sub(lambda match: self._name(match.group(), seen), query)
        pieces = _kept_apart(named)
        unknown = {word for word in map(str.casefold, WORD.findall(" ".join(pieces))) if self._is_unknown(word, seen)}
        if len(unknown) > MOST_UNKNOWN:
            return query
        meant = {word: self._meant(word, seen) for word in unknown if not _is_common(word)}
        if any(meant.values()):  # the writer is known to misspell
            meant |= {word: self._meant(word, seen) for word in unknown - meant.keys()}
        return "".join(
            WORD.sub(lambda match: meant.get(match.group().casefold()) or match.group(), piece) for piece in pieces
        )

    def _name(self, written: str, seen: Seen) -> str:
        name = written.casefold()
        return name if CAMEL.search(written) and self._has(name, seen) else written

    def _is_unknown(self, word: str, seen: Seen) -> bool:
        return word not in FUNCTION_WORDS and not any(self._has(each, seen) for each in self._stems.get(stem(word), ()))

    def _meant(self, word: str, seen: Seen) -> str | None:
        """The word of the catalog that an unknown word is a misspelling of; None if there is none."""
        errors = 2 if len(word) >= LONG else 1
        least = LEAST_USES if len(word) > SHORT else OF_NAMES
        near = [
            (distance, -(weight if seen is None else self._weight(known, seen)), known)
            for known, weight in self._by_letter.get(word[0], {}).items()
            if len(known) > LEAST_LETTERS
            and abs(len(known) - len(word)) <= errors
            and weight >= least
            and self._has(known, seen)  # sooner told than how they differ
            and (distance := edits(word, known, errors)) <= errors
        ]
        return min((each for each in near if -each[1] >= least), default=(0, 0, None))[2]

    def _has(self, word: str, seen: Seen) -> bool:
        tools = self._named.get(word, ()), self._told.get(word, ())
        return any(tools) if seen is None else not all(map(seen.isdisjoint, tools))

    def _weight(self, word: str, seen: Seen = None) -> int:
        tools = self._named.get(word, ()), self._told.get(word, ())
        in_names, in_descriptions = map(len, tools if seen is None else map(seen.intersection, tools))
        return OF_NAMES * in_names + in_descriptions


def _name_words(tool: Tool) -> set[str]:
    return {*raw_words(tool.name), *raw_words(tool.server)}


def _description_words(tool: Tool) -> set[str]:
    return set(raw_words(tool.description))


def _by_word(tools: Iterable[Tool], words_of: Callable[[Tool], set[str]]) -> dict[str, list[ToolId]]:
    found: dict[str, list[ToolId]] = {}
    for tool in tools:
        for word in words_of(tool):
            found.setdefault(word, []).append(tool.id)
    return found


def _exchange(known: dict[str, ToolIds], gone: Mapping[str, list[ToolId]], new: Mapping[str, list[ToolId]]) -> set[str]:
    """Take tools from the words that they had, and add others to theirs. Returns the words."""
    words = {*gone, *new}
    for word in words:
        without = set(gone.get(word, ()))
        tools = (*(each for each in known.get(word, ()) if each not in without), *new.get(word, ()))
        if tools:
            known[word] = tools
        else:
            known.pop(word, None)
    return words


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
