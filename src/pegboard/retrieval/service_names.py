"""Scores whether a request names a tool's server or product: "create a ticket in Zendesk".

Among thousands of tools, the wish of a request fits tools of many services, and one word of it says which is meant.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence, Set
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pegboard.model import Floats, Tool
from pegboard.retrieval.name_words import GENERIC, LEADING_VERBS
from pegboard.retrieval.named_servers import LABEL
from pegboard.retrieval.postings import Postings
from pegboard.retrieval.slots import CatalogChange, Slots
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


class ServiceNames:
    """For each tool a number from 0 to 1, shape (n,): how much information the named words of its service have.

    The information of a word is ln(servers / servers that use it), up to `SURE`. An ordinary word, such as `time`,
    counts only where it is written like a name.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._slots = Slots.first(len(tools))
        self._number: dict[str, int] = {}
        numbers = [self._number.setdefault(tool.server, len(self._number)) for tool in tools]
        self._server_of = np.array(numbers, np.int32)
        self._texts = Postings.of_words(_text_words(tool) for tool in tools)
        self._servers: dict[str, ServerNames] = {}
        groups: defaultdict[str, list[Tool]] = defaultdict(list)
        for tool in tools:
            groups[tool.server].append(tool)
        for server, of_server in groups.items():
            self._servers[server] = ServerNames(server, len(of_server), Counter(map(_lead, of_server)))
        self._named_by: dict[str, frozenset[str]] = {}
        for server, names in self._servers.items():
            self._name(server, frozenset(), names.words)

    def changed(self, change: CatalogChange) -> ServiceNames:
        """The names of the changed catalog."""
        other = copy(self)
        other._slots = change.slots
        other._servers, other._named_by = self._servers.copy(), self._named_by.copy()
        other._number = self._number.copy()
        other._server_of = np.full(change.slots.size, -1, np.int32)
        other._server_of[: len(self._server_of)] = self._server_of
        other._texts = self._texts.changed(
            [(each.slot, _text_words(each.tool)) for each in change.gone],
            [(each.slot, _text_words(each.tool)) for each in change.new],
        )
        for each in change.gone:
            other._server_of[each.slot] = -1
        for each in change.new:
            other._server_of[each.slot] = other._number.setdefault(each.tool.server, len(other._number))
        for server in {each.tool.server for each in (*change.gone, *change.new)}:
            other._recount(server, change)
        return other

    def _recount(self, server: str, change: CatalogChange) -> None:
        """Change the names of one server."""
        before = self._servers.pop(server, ServerNames(server, 0, Counter()))
        gone = [each.tool for each in change.gone if each.tool.server == server]
        new = [each.tool for each in change.new if each.tool.server == server]
        leads = before.leads.copy()
        leads.subtract(map(_lead, gone))
        leads.update(map(_lead, new))
        after = ServerNames(server, before.tools + len(new) - len(gone), leads)
        if after.tools:
            self._servers[server] = after
        self._name(server, before.words, after.words)

    def _name(self, server: str, before: frozenset[str], words: frozenset[str]) -> None:
        for word in before - words:
            self._named_by[word] -= {server}
        for word in words - before:
            self._named_by[word] = self._named_by.get(word, frozenset()) | {server}

    def scores(self, query: str) -> Floats:
        out = np.zeros(self._slots.size, np.float32)
        for word, weight in self._named(query):
            at = np.isin(self._server_of, [self._number[server] for server in self._named_by[word]])
            out[at] = np.maximum(out[at], np.float32(weight))
        return self._slots.in_order(out)

    def _named(self, query: str) -> Iterator[tuple[str, float]]:
        """The words of the query that name a service, with what they say."""
        label = LABEL.match(query)
        labels = set(raw_words(label.group(1))) if label else set()
        capitalized = {word for match in CAPITALIZED.finditer(query) for word in raw_words(match.group())}
        for word in self._named_by.keys() & set(raw_words(query)):
            weight = self._weight(word)
            if weight < LEAST:
                continue
            if word in labels or word not in common_words():
                yield word, weight
            elif word in capitalized:
                yield word, weight * IF_COMMON

    def _weight(self, word: str) -> float:
        """The share of `SURE` that a word says, 0 to 1."""
        naming = [self._number[server] for server in self._named_by[word]]
        using = {*naming, *self._server_of[self._texts.of(word)].tolist()}
        return min(1.0, math.log(len(self._servers) / len(using)) / SURE) if naming else 0.0


@dataclass(frozen=True)
class ServerNames:
    """How many tools a server has, and how many of them begin with each word; "" are those of one word."""

    server: str
    tools: int
    leads: Counter[str]

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that name it: those of its name, and of products that most of its tools begin with."""
        if not self.tools:
            return frozenset()
        words = [word for word in dict.fromkeys(raw_words(self.server)) if may_name(word)]
        least = max(LEAST_TOOLS, OF_SERVER * self.tools)
        products = (word for word, times in self.leads.items() if times >= least)
        return frozenset(words if len(words) <= MOST_WORDS else ()).union(
            word for word in products if may_name(word) and word not in LEADING_VERBS
        )


def _lead(tool: Tool) -> str:
    """The first word of a name of several."""
    words = known_words(tool.name)
    return words[0] if len(words) > 1 else ""


def _text_words(tool: Tool) -> Set[str]:
    return {*known_words(tool.name), *known_words(tool.description)}


def may_name(word: str) -> bool:
    """Whether a word of a server's name may stand for it alone."""
    ordinary = word in GENERIC or word in TECHNICAL or word in FUNCTION_WORDS
    return len(word) >= SHORTEST and not word.isdigit() and not ordinary
