"""The keyword search of seed 002: exact name > keyword in name > keyword in description > category match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from pegboard.model import Floats, Tool
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words

EXACT_NAME = 1000.0
IN_NAME = 100.0
IN_DESCRIPTION = 10.0
IN_CATEGORY = 1.0
"""Each tier outweighs what nine keywords can earn in the tier below; queries of more keywords are rare."""

NO_DESCRIPTIONS: Mapping[str, str] = MappingProxyType({})


class KeywordIndex:
    """Points of every tool for a query, shape (n,); 0 is no match.

    ``category_descriptions`` are words of categories too, by their names.
    """

    def __init__(self, tools: Sequence[Tool], category_descriptions: Mapping[str, str] = NO_DESCRIPTIONS) -> None:
        self._names = [[" ".join(raw_words(name)) for name in (tool.name, *tool.aliases)] for tool in tools]
        self._name_words = [frozenset(word for name in names for word in name.split()) for names in self._names]
        self._descriptions = [frozenset(raw_words(tool.description)) for tool in tools]
        self._categories = [
            frozenset(raw_words(f"{category} {category_descriptions.get(category, '')}"))
            for category in (tool.category or tool.server for tool in tools)
        ]

    def scores(self, query: str) -> Floats:
        words = raw_words(query)
        phrase = " ".join(words)
        keywords = [word for word in dict.fromkeys(words) if word not in FUNCTION_WORDS] or words
        content = " ".join(keywords)
        points = (
            EXACT_NAME * (phrase in names or content in names)
            + IN_NAME * sum(word in in_name for word in keywords)
            + IN_DESCRIPTION * sum(word in in_description for word in keywords)
            + IN_CATEGORY * sum(word in in_category for word in keywords)
            for names, in_name, in_description, in_category in zip(
                self._names, self._name_words, self._descriptions, self._categories, strict=True
            )
        )
        return np.fromiter(points, np.float32, len(self._names))
