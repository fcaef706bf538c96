"""Scores whether a request names a tool's server or product: "create a ticket in Zendesk".

Among thousands of tools, the wish of a request fits tools of many services, and one word of it says which is meant.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Floats, Tool
from pegboard.retrieval.name_words import GENERIC, LEADING_VERBS
from pegboard.retrieval.named_servers import LABEL
from pegboard.retrieval.speller import common_words
from pegboard.retrieval.words import FUNCTION_WORDS, known_words, raw_words

TECHNICAL = frozenset(
    re.findall(
        r"\w+",
        "ai api app client com http io js local mcp node npm official py python remote server servers service tools ts",
    )
)
"""Words of servers' names that name none of them."""
SHORTEST = 3
MOST_WORDS = 4
"""Naming words of one server; more would be there to be found by."""
LEAST_TOOLS, OF_SERVER = 3, 0.5
"""Tools that begin with a word, and their least share of the server's, so that it names a product."""
SURE = math.log(1000)
"""Nats: a word that one of a thousand servers uses names it beyond doubt."""
LEAST = 0.15
"""Words that say less name nothing."""
IF_COMMON = 0.5
"""The share that is left of an ordinary word written like a name, such as `Slack`."""
CAPITALIZED = re.compile(r"(?<=[\w,;)] )[A-Z]\w+")
"""Capitalized words that begin no sentence."""
Places = NDArray[np.intp]


class ServiceNames:
    """For each tool a number from 0 to 1, shape (n,): how much information the named words of its service have.

    The information of a word is ln(servers / servers that use it), up to `SURE`. An ordinary word, such as `time`,
    counts only where it is written like a name.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._size = len(tools)
        naming = _naming(tools)
        users = _users(tools, naming.keys())
        servers = len({tool.server for tool in tools})
        places: defaultdict[str, list[int]] = defaultdict(list)
        by_server: defaultdict[str, list[int]] = defaultdict(list)
        for place, tool in enumerate(tools):
            by_server[tool.server].append(place)
        for word, of_word in naming.items():
            for server in sorted(of_word):
                places[word] += by_server[server]
        self._services: Mapping[str, tuple[float, Places]] = {
            word: (weight, np.array(sorted(places[word]), np.intp))
            for word, of_word in naming.items()
            if (weight := min(1.0, math.log(servers / len(of_word | users[word])) / SURE)) >= LEAST
        }

    def scores(self, query: str) -> Floats:
        out = np.zeros(self._size, np.float32)
        for word, weight in self._named(query):
            places = self._services[word][1]
            out[places] = np.maximum(out[places], np.float32(weight))
        return out

    def _named(self, query: str) -> Iterator[tuple[str, float]]:
        """The words of the query that name a service, with what they say."""
        label = LABEL.match(query)
        labels = set(raw_words(label.group(1))) if label else set()
        capitalized = {word for match in CAPITALIZED.finditer(query) for word in raw_words(match.group())}
        for word in self._services.keys() & set(raw_words(query)):
            weight = self._services[word][0]
            if word in labels or word not in common_words():
                yield word, weight
            elif word in capitalized:
                yield word, weight * IF_COMMON


def _naming(tools: Sequence[Tool]) -> Mapping[str, set[str]]:
    """The servers of each word that names them: words of their names, and of products that most of their tools begin
    with."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    sizes = Counter(tool.server for tool in tools)
    for server in sizes:
        words = [word for word in dict.fromkeys(raw_words(server)) if may_name(word)]
        for word in words if len(words) <= MOST_WORDS else ():
            found[word].add(server)
    leads = Counter((known_words(tool.name)[:1], tool.server) for tool in tools if len(known_words(tool.name)) > 1)
    for ((word,), server), times in leads.items():
        if times >= max(LEAST_TOOLS, OF_SERVER * sizes[server]) and may_name(word) and word not in LEADING_VERBS:
            found[word].add(server)
    return found


def _users(tools: Sequence[Tool], words: Set[str]) -> Mapping[str, set[str]]:
    """The servers in whose tools' names and descriptions each word occurs."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for tool in tools:
        for word in words & {*known_words(tool.name), *known_words(tool.description)}:
            found[word].add(tool.server)
    return found


def may_name(word: str) -> bool:
    """Whether a word of a server's name may stand for it alone."""
    ordinary = word in GENERIC or word in TECHNICAL or word in FUNCTION_WORDS
    return len(word) >= SHORTEST and not word.isdigit() and not ordinary
