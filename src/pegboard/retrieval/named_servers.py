"""Finds the servers and products that a search names: `jira: add comment`, `slack post message`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pegboard.model import Tool, ToolId
from pegboard.retrieval.name_match import written_out
from pegboard.retrieval.name_words import GENERIC, VERBS
from pegboard.retrieval.speller import common_words
from pegboard.retrieval.words import raw_words, stem

LABEL = re.compile(r"\s*([\w.@/-]{2,80})\s*:(?!//)")
"""A name before a colon at the beginning: meant as a server's, whatever it means elsewhere."""
LEAST_TOOLS = 3
"""Tools of a server whose names begin with one word, so that it names a product: `jira_create_issue`."""
OF_SERVER = 0.2
"""The least share of its server's tools that a product has."""
ELSEWHERE = 0.02
"""Share of the other servers' tools from which on a word in their texts names no server."""
BEGINNING = 5
"""Letters of a server's name that stand for all of it: `mongo` for `mongodb`."""
Tools = frozenset[ToolId]


class NamedServers:
    """The names of one catalog's servers and products.

    A word that other servers' tools use too names no server, unless it is written as one, before a colon.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        groups = _groups(tools)
        self._labels: dict[str, Tools] = {}
        for tool in tools:
            self._labels[_label(tool.server)] = groups[tool.server]
        spoken: dict[frozenset[str], set[ToolId]] = {}
        for name, group in groups.items():
            words = frozenset(word for word in raw_words(name) if word not in GENERIC)
            if words:
                spoken.setdefault(words, set()).update(group)
                self._labels.setdefault(_label(name), group)
        used = _used_elsewhere(spoken, tools)
        self._spoken: Mapping[frozenset[str], Tools] = {
            words: frozenset(group)
            for words, group in spoken.items()
            if any(used[words, word] < ELSEWHERE * len(tools) for word in words)
        }

    def of(self, query: str) -> tuple[Tools, bool]:
        """The tools of every server that is named, and whether that is beyond doubt: the name is no ordinary word, or
        it is before a colon.
        """
        if (label := LABEL.match(query)) and (group := self._labels.get(_label(label.group(1)))):
            return group, True
        said = {part for word in raw_words(query) for part in (word, *written_out(word))}
        found: Tools = frozenset()
        certain = False
        for words, group in self._spoken.items():
            if all(_is_said(word, said) for word in words):
                found |= group
                certain = certain or any(word not in common_words() for word in words)
        return found, certain


def _groups(tools: Sequence[Tool]) -> dict[str, Tools]:
    """The tools of each server by its name, and those of each product by the first word of their names."""
    groups: dict[str, set[ToolId]] = {}
    servers: dict[str, set[str]] = {}
    for tool in tools:
        groups.setdefault(tool.server, set()).add(tool.id)
        first = next(iter(raw_words(tool.name)), "")
        servers.setdefault(first, set()).add(tool.server)
    for first, (server, *others) in ((first, sorted(of)) for first, of in servers.items()):
        of_product = {tool for tool in groups[server] if next(iter(raw_words(tool.name)), "") == first}
        enough = len(of_product) >= max(LEAST_TOOLS, OF_SERVER * len(groups[server]))
        if enough and not others and len(first) >= LEAST_TOOLS and first not in groups and first not in VERBS:
            groups[first] = of_product
    return {name: frozenset(group) for name, group in groups.items()}


def _used_elsewhere(
    groups: Mapping[frozenset[str], set[ToolId]], tools: Sequence[Tool]
) -> Counter[tuple[frozenset[str], str]]:
    """How many tools outside a group have each word of its name in their own name or description."""
    used: Counter[tuple[frozenset[str], str]] = Counter()
    keys: dict[str, list[frozenset[str]]] = {}
    for key in groups:
        for word in key:
            keys.setdefault(word, []).append(key)
    for tool in tools:
        for word in keys.keys() & raw_words(f"{tool.name} {tool.description}"):
            used.update((key, word) for key in keys[word] if tool.id not in groups[key])
    return used


def _is_said(word: str, said: set[str]) -> bool:
    return word in said or any(
        (len(each) >= BEGINNING and word.startswith(each)) or stem(each) == stem(word) for each in said
    )


def _label(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))
