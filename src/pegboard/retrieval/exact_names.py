"""Finds the tools that a query names exactly, in any spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Mask, Scores, Tool
from pegboard.retrieval.rank_attacks import DAMPING
from pegboard.retrieval.words import raw_words

Places = NDArray[np.intp]

NAMED = np.float32(0.999)
"""The minimum score of a named tool, above that of any other."""
UNNAMED = np.float32(0.998)

LONGEST = 200
"""Maximum characters of a query that may be a name as a whole, and of a name."""
QUOTED = re.compile(r"""`([^`\n]{1,200})`|"([^"\n]{1,200})"|'([^'\n]{1,200})'|“([^”\n]{1,200})”|«([^»\n]{1,200})»""")
TOKEN = re.compile(r"""[^\s`"'“”«»()\[\]{}<>,;!?]{2,200}""")
PREFIX = "__"
REMEMBERED = 65_536
"""Spellings that are remembered: three for each name of a large catalog."""


class ExactNames:
    """Names and aliases, also prefixed by the server's name or by `mcp` and it; case and separators do not count.

    If two names differ only in these, the one spelled as in the query is meant.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names = [tool.name for tool in tools]
        self._places: dict[str, list[int]] = {}
        self._one_word: set[str] = set()
        for place, tool in enumerate(tools):
            for name in (tool.name, *tool.aliases):
                if len(raw_words(name)) < 2:
                    self._one_word.add(_compact(name))
                for written in (name, f"{tool.server} {name}", f"mcp {tool.server} {name}"):
                    self._places.setdefault(_compact(written), []).append(place)
        self._places.pop("", None)

    def find(self, query: str) -> Places:
        """Places in the catalog, ascending.

        A name may be the whole query, a quoted part, or a word in the spelling of names (`create_issue`,
        `createIssue`). A name that is an ordinary word, such as `search`, must be alone or quoted.
        """
        return np.array(sorted({place for written in self._written(query) for place in self._meant(written)}), np.intp)

    def _meant(self, written: str) -> Sequence[int]:
        places = self._places.get(_compact(written), ())
        return [place for place in places if self._names[place] == written] or places

    def _written(self, query: str) -> Iterator[str]:
        """The parts of a query that may be names, as written."""
        if len(query) <= LONGEST:
            yield from _forms(query.strip())
        for match in QUOTED.finditer(query):
            yield from _forms(next(filter(None, match.groups())))
        for token in TOKEN.findall(query):
            yield from (form for form in _forms(token.rstrip(".:")) if _compact(form) not in self._one_word)


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


def _forms(text: str) -> Iterator[str]:
    """The text, and the part after a server prefix that the client chose, or after a colon (`select:create_issue`)."""
    yield text
    for separator in (PREFIX, ":"):
        _, prefix, name = text.rpartition(separator)
        if prefix and name:
            yield name


@lru_cache(maxsize=REMEMBERED)
def _compact(text: str) -> str:
    """Only the letters and digits, case folded.

    >>> _compact("Create-Issue"), _compact("createIssue")
    ('createissue', 'createissue')
    """
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
