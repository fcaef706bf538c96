"""The tools that a query names: by the name itself, however it is written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Scores, Tool
from pegboard.retrieval.words import raw_words

Places = NDArray[np.intp]

NAMED = np.float32(0.999)
"""What a tool that is named has at least, and any other less."""
UNNAMED = np.float32(0.998)

LONGEST = 200
"""Characters of a query beyond which it is no name, and of a name that is looked for."""
QUOTED = re.compile(r"""`([^`\n]{1,200})`|"([^"\n]{1,200})"|'([^'\n]{1,200})'|“([^”\n]{1,200})”|«([^»\n]{1,200})»""")
TOKEN = re.compile(r"""[^\s`"'“”«»()\[\]{}<>,;!?]{2,200}""")
PREFIX = "__"


class ExactNames:
    """Names, aliases and both with their server's name or `mcp` and it in front; case and separators do not count.

    Where they are all that tells two names apart, the one that is written as the query writes it is meant.
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

        The whole query may be a name, or something in quotes, or a word that is written as only names are
        (`create_issue`, `createIssue`). A name of one ordinary word, such as `search`, needs to be alone or in quotes.
        """
        return np.array(sorted({place for written in self._written(query) for place in self._meant(written)}), np.intp)

    def _meant(self, written: str) -> Sequence[int]:
        places = self._places.get(_compact(written), ())
        return [place for place in places if self._names[place] == written] or places

    def _written(self, query: str) -> Iterator[str]:
        """What may be a name, as it is written."""
        if len(query) <= LONGEST:
            yield from _forms(query.strip())
        for match in QUOTED.finditer(query):
            yield from _forms(next(filter(None, match.groups())))
        for token in TOKEN.findall(query):
            yield from (form for form in _forms(token.rstrip(".:")) if _compact(form) not in self._one_word)


def name_first(scores: Scores, named: Places) -> Scores:
    """The scores, shares of 1 or probabilities, with the named tools before all others, in their own order."""
    if not len(named):
        return scores
    values = np.minimum(scores.values, UNNAMED)
    values[named] = 1 - (1 - scores.values[named]) * (1 - NAMED)  # in float32, as all scores
    return replace(scores, values=values)


def _forms(text: str) -> Iterator[str]:
    """The text, and what follows the prefix of a server that a client calls its own way."""
    yield text
    _, prefix, name = text.rpartition(PREFIX)
    if prefix:
        yield name


def _compact(text: str) -> str:
    """Letters and digits alone.

    >>> _compact("Create-Issue"), _compact("createIssue")
    ('createissue', 'createissue')
    """
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
