"""What an encoder may be tuned on: tools and queries that are no near-duplicates of those it will be judged by."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

WORDS = re.compile(r"\w+")
HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
WIDTH = 3
LONGEST = 150
SIMILAR = 0.4
"""Two texts that share this part of all their word triples (Jaccard) count as one."""
SPOILT = 0.25
"""A server of whose tools this share is in the scored sets is left out whole."""

Tool = dict[str, Any]


def words(text: str) -> list[str]:
    """
    >>> words("createIssue_v2: open an issue")
    ['create', 'issue', 'v2', 'open', 'an', 'issue']
    """
    return WORDS.findall(HUMPS.sub(" ", text).replace("_", " ").casefold())


def triples(text: str) -> frozenset[tuple[str, ...]]:
    found = words(text)[:LONGEST]
    return frozenset(tuple(found[at : at + WIDTH]) for at in range(max(1, len(found) - WIDTH + 1)))


def tool_text(tool: Tool) -> str:
    return f"{tool['name']} {tool['description'] or ''}"


def product(server: str) -> str:
    """A server's name without its scope and the words that many servers have in theirs.

    >>> product("@acme/github-mcp-server")
    'github'
    """
    return "".join(word for word in words(server.split("/")[-1]) if word not in {"mcp", "server", "mcpserver"})


class NearDuplicates:
    """Finds the most similar of the texts it was given."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._known = [triples(text) for text in texts]
        self._having: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place, known in enumerate(self._known):
            for triple in known:
                self._having[triple].append(place)

    def has(self, text: str) -> bool:
        asked = triples(text)
        shared = Counter(place for triple in asked for place in self._having.get(triple, ()))
        return any(count / len(asked | self._known[place]) >= SIMILAR for place, count in shared.items())


def clean_tools(tools: Sequence[Tool], scored: Sequence[Tool]) -> list[Tool]:
    """Tools of servers that are in no scored set, by product or by what they offer, and that are like none there."""
    duplicates = NearDuplicates(map(tool_text, scored))
    products = {product(tool["server"]) for tool in scored}
    marked = [(tool, duplicates.has(tool_text(tool))) for tool in tools]
    total, spoilt = Counter(tool["server"] for tool in tools), Counter(tool["server"] for tool, bad in marked if bad)
    return [
        tool
        for tool, bad in marked
        if not bad
        and product(tool["server"]) not in products
        and spoilt[tool["server"]] < SPOILT * total[tool["server"]]
    ]
