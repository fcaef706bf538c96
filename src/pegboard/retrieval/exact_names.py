"""Finds the tools that a query names exactly, in any spelling."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from copy import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Mask, Scores, Tool
from pegboard.retrieval.key_table import KeyTable
from pegboard.retrieval.rank_attacks import DAMPING
from pegboard.retrieval.slots import CatalogChange, Slots
from pegboard.retrieval.words import LONGEST_NAME, raw_words, remembered

Places = NDArray[np.intp]

NAMED = np.float32(0.999)
"""The minimum score of a named tool, above that of any other."""
UNNAMED = np.float32(0.998)

LONGEST = 200
"""Maximum characters of a query that may be a name as a whole, and of a name."""
QUOTED = re.compile(r"""`([^`\n]{1,200})`|"([^"\n]{1,200})"|'([^'\n]{1,200})'|“([^”\n]{1,200})”|«([^»\n]{1,200})»""")
TOKEN = re.compile(r"""[^\s`"'“”«»()\[\]{}<>,;!?]{2,200}""")
PREFIX = "__"
REMEMBERED = 8_192
"""Spellings that are remembered."""


class ExactNames:
    """Names and aliases, also prefixed by the server's name or by `mcp` and it; case and separators do not count.

    If two names differ only in these, the one spelled as in the query is meant.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._slots = Slots.first(len(tools))
        self._names = {slot: tool.name for slot, tool in enumerate(tools)}
        self._found = KeyTable((slot, _spellings(tool)) for slot, tool in enumerate(tools))
        self._one_word = Counter(word for tool in tools for word in _single_words(tool))

    def changed(self, change: CatalogChange) -> ExactNames:
        """The names of the changed catalog."""
        other = copy(self)
        other._slots = change.slots
        other._names, other._one_word = self._names.copy(), self._one_word.copy()
        other._found = self._found.changed(
            [(each.slot, _spellings(each.tool)) for each in change.gone],
            [(each.slot, _spellings(each.tool)) for each in change.new],
        )
        for each in change.gone:
            del other._names[each.slot]
            other._one_word.subtract(_single_words(each.tool))
        for each in change.new:
            other._names[each.slot] = each.tool.name
            other._one_word.update(_single_words(each.tool))
        return other

    def find(self, query: str) -> Places:
        """Places in the catalog, ascending.

        A name may be the whole query, a quoted part, or a word in the spelling of names (`create_issue`,
        `createIssue`). A name that is an ordinary word, such as `search`, must be alone or quoted; so must one that is
        written as such a word: `login` for `log_in`.
        """
        return self._slots.places(list({slot for written in self._written(query) for slot in self._meant(written)}))

    def _meant(self, written: str) -> Sequence[int]:
        slots = self._found.of(_compact(written)).tolist()
        return [slot for slot in slots if self._names[slot] == written] or slots

    def _written(self, query: str) -> Iterator[str]:
        """The parts of a query that may be names, as written."""
        if len(query) <= LONGEST:
            yield from _forms(query.strip())
        for match in QUOTED.finditer(query):
            yield from _forms(next(filter(None, match.groups())))
        for token in TOKEN.findall(query):
            yield from (form for form in _forms(token.rstrip(".:")) if self._is_spelled_like_a_name(form))

    def _is_spelled_like_a_name(self, form: str) -> bool:
        """Whether a word of a sentence has a separator or a capital within, and is no tool's name of one word."""
        ordinary = form.isascii() and form.isalnum() and form[1:].islower()
        return not ordinary and len(raw_words(form)) > 1 and not self._one_word[_compact(form)]


def name_first(scores: Scores, named: Places) -> Scores:
    """The scores, shares of 1 or probabilities, with the named tools before all others, in their order."""
    if not len(named):
        return scores
    values = np.minimum(scores.values, UNNAMED)
    values[named] = 1 - (1 - scores.values[named]) * (1 - NAMED)  # in float32, as all scores
    return replace(scores, values=values)


def damped(scores: Scores, suspected: Mask) -> Scores:
    """The scores, with `DAMPING` of those of suspected tools left; tools that were named stay before all others."""
    if not suspected.any():
        return scores
    less = np.where(scores.values > 0, scores.values * np.float32(DAMPING), scores.values)
    named = (scores.values >= NAMED) & (scores.values <= 1)  # points of keywords are larger
    values = np.where(named, NAMED, less)
    return replace(scores, values=np.where(suspected, values, scores.values))


def _spellings(tool: Tool) -> Set[str]:
    """Its name and aliases, plain and with both prefixes."""
    names = (tool.name, *tool.aliases)
    prefixes = ("", _compact(tool.server), _compact(f"mcp {tool.server}"))
    return {written for name in names for prefix in prefixes if (written := prefix + _compact(name))}


def _single_words(tool: Tool) -> list[str]:
    """Those of its name and aliases that are one word."""
    return [_compact(name) for name in (tool.name, *tool.aliases) if len(raw_words(name)) < 2]


def _forms(text: str) -> Iterator[str]:
    """The text, and the part after a server prefix that the client chose, or after a colon (`select:create_issue`)."""
    yield text
    for separator in (PREFIX, ":"):
        _, prefix, name = text.rpartition(separator)
        if prefix and name:
            yield name


@remembered(REMEMBERED, LONGEST_NAME)
def _compact(text: str) -> str:
    """Only the letters and digits, case folded.

    >>> _compact("Create-Issue"), _compact("createIssue")
    ('createissue', 'createissue')
    """
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
