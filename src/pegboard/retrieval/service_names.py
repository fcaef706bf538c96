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
from typing import TypeVar

import numpy as np

from pegboard.cached_property import cached_property
from pegboard.model import Floats, Tool
from pegboard.retrieval.name_words import GENERIC, LEADING_VERBS
from pegboard.retrieval.named_servers import LABEL
from pegboard.retrieval.placed_names import placed_names
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
IF_PLACED = 0.75
"""The share that is left of an ordinary word that is all of a name, where a service would be named: `in slack`."""
CAPITALIZED = re.compile(r"(?<=[\w,;)] )[A-Z]\w+")
"""Capitalized words that begin no sentence."""


Name = TypeVar("Name", str, frozenset[str])


class ServiceNames:
    """For each tool a number from 0 to 1, shape (n,): how much information the named words of its service have.

    The information of words is ln(servers / servers that use all of them), up to `SURE`. An ordinary word, such as
    `time`, counts only where it is written like a name or stands in the place of one (`placed_names`).
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
        self._whole: dict[frozenset[str], frozenset[str]] = {}
        for server, names in self._servers.items():
            self._name(server, ServerNames(server, 0, Counter()), names)

    def changed(self, change: CatalogChange) -> ServiceNames:
        """The names of the changed catalog."""
        other = copy(self)
        other._slots = change.slots
        other._servers = self._servers.copy()
        other._named_by, other._whole = self._named_by.copy(), self._whole.copy()
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
        self._name(server, before, after)

    def _name(self, server: str, before: ServerNames, after: ServerNames) -> None:
        _replace(self._named_by, server, before.words, after.words)
        _replace(self._whole, server, before.whole, after.whole)

    def scores(self, query: str) -> Floats:
        out = np.zeros(self._slots.size, np.float32)
        for servers, weight in (*self._named(query), *self._placed(query)):
            weights = np.zeros(len(self._number) + 1, np.float32)  # the last one is of slots without a tool, at -1
            weights[[self._number[server] for server in servers]] = weight
            out = np.maximum(out, weights[self._server_of])
        return self._slots.in_order(out)

    def _named(self, query: str) -> Iterator[tuple[frozenset[str], float]]:
        """The services that a word of the query names, with what it says."""
        label = LABEL.match(query)
        labels = set(raw_words(label.group(1))) if label else set()
        capitalized = {word for match in CAPITALIZED.finditer(query) for word in raw_words(match.group())}
        for word in self._named_by.keys() & set(raw_words(query)):
            weight = self._weight({word})
            if weight < LEAST:
                continue
            if word in labels or word not in common_words():
                yield self._named_by[word], weight
            elif word in capitalized:
                yield self._named_by[word], weight * IF_COMMON

    def _placed(self, query: str) -> Iterator[tuple[frozenset[str], float]]:
        """The services whose whole names stand where one would be named, with what the names say."""
        for said in placed_names(query):
            words = frozenset(filter(may_name, said))
            servers = self._whole.get(words)
            if not servers:
                continue
            ordinary = len(words) == 1 and words <= common_words()
            weight = self._weight(words) * (IF_PLACED if ordinary else 1.0)
            if weight >= LEAST:
                yield servers, weight

    def _weight(self, words: Set[str]) -> float:
        """The share of `SURE` that words say together, 0 to 1."""
        using = set.intersection(*map(self._using, words))
        return min(1.0, math.log(len(self._servers) / len(using)) / SURE) if using else 0.0

    def _using(self, word: str) -> set[int]:
        """The numbers of the servers that a word names, and of those whose tools use it; none if it names no server."""
        naming = {self._number[server] for server in self._named_by[word]}
        return naming and naming.union(self._server_of[self._texts.of(word)].tolist())


@dataclass(frozen=True)
class ServerNames:
    """How many tools a server has, and how many of them begin with each word; "" are those of one word."""

    server: str
    tools: int
    leads: Counter[str]

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that name it: those of its name, and of products that most of its tools begin with."""
        return self._words.union(self._products)

    @cached_property
    def whole(self) -> frozenset[frozenset[str]]:
        """The names that stand for it alone: that of the server without its owner's, and each product's."""
        own = self._words.intersection(raw_words(self.server.rpartition("/")[2]))
        return frozenset([*([own] if own else ()), *(frozenset([word]) for word in self._products)])

    @cached_property
    def _words(self) -> frozenset[str]:
        words = {word for word in raw_words(self.server) if may_name(word)} if self.tools else set()
        return frozenset(words if len(words) <= MOST_WORDS else ())

    @cached_property
    def _products(self) -> frozenset[str]:
        least = max(LEAST_TOOLS, OF_SERVER * self.tools)
        found = (word for word, times in self.leads.items() if times >= least)
        return frozenset(word for word in found if may_name(word) and word not in LEADING_VERBS)


def _replace(named_by: dict[Name, frozenset[str]], server: str, before: Set[Name], after: Set[Name]) -> None:
    """Change which names stand for a server."""
    for name in before - after:
        named_by[name] -= {server}
    for name in after - before:
        named_by[name] = named_by.get(name, frozenset()) | {server}


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
