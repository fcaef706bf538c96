"""Servers whose tools stand where others' tools should: copied texts, copied names, and descriptions made of requests.

Ranking goes by what tools say of themselves, so whoever says what others say, or what users ask, is found
in their place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pegboard.model import Tool, ToolId

Kind = Literal["copied-description", "copied-name", "requests"]

LEAST_WORDS = 6
"""Words of a description from which on another one with the same words is no coincidence."""
SAME = 0.8
"""Share of the words that two descriptions have in common, from which on one is a copy of the other."""
MOST_ALIKE = 40
"""Tools with which one is compared, of those that share its rarest words."""
COPIED_NAMES, COPIED_OF_MANY = 2, 4
"""Tools of a server with names of another's, and of several others' together, from which on that is no coincidence."""
SEVERAL = "several servers"
LEAST_REQUESTS = 3

HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
WORD = re.compile(r"\w+")
SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|[。！？；]")
REQUEST = re.compile(
    r"""^\W{0,3}(?:i(?:'m|'d|'ve)?\b|my\b|we\b|(?:can|could|would|will)\ (?:you|i|we)\b|please\b|help\ me\b
    |(?:\w+)\ (?:me|my|us|our)\b|how\ (?:do|can|much|many|long|far)\b
    |wh(?:at|ere|en|ich|o)(?:'s|\ is|\ are|\ was|\ did)\b)
    |\b(?:for\ me|my\ \w+)\b[^.!?]{0,60}[.!?]?$|\?\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""What people write who want something: a tool says what it does, and for whom it does not say "me" or "my"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """``tools`` of a server that crowd those of ``of``; of all servers where that is empty."""

    server: str
    kind: Kind
    tools: tuple[ToolId, ...]
    of: str = ""


def crowds(tools: Sequence[Tool]) -> list[Crowd]:
    """What is found among the tools of all servers. Of two that say the same the later one is the copy."""
    found: defaultdict[tuple[str, Kind, str], list[ToolId]] = defaultdict(list)
    for tool, original in _copies(tools):
        found[tool.server, "copied-description", original.server].append(tool.id)
    for tool, original in _same_names(tools):
        found[tool.server, "copied-name", original.server].append(tool.id)
    for tool in tools:
        if is_made_of_requests(tool.description):
            found[tool.server, "requests", ""].append(tool.id)
    few = [key for key, ids in found.items() if key[1] == "copied-name" and len(ids) < COPIED_NAMES]
    for key in few:
        found[key[0], "copied-name", SEVERAL] += found.pop(key)
    return [
        Crowd(server=server, kind=kind, tools=tuple(ids), of=of)
        for (server, kind, of), ids in found.items()
        if of != SEVERAL or len(ids) >= COPIED_OF_MANY
    ]


def is_made_of_requests(description: str) -> bool:
    """Whether half of its sentences, three at least, are what users ask, and not what a tool does.

    >>> is_made_of_requests("Find me a flight to Oslo. What's on my calendar today? Please order a pizza.")
    True
    >>> is_made_of_requests("Finds flights between two airports. Returns prices. Use it when a user asks for one.")
    False
    """
    sentences = [each for each in SENTENCE.split(description.strip()) if WORD.search(each)]
    asked = sum(REQUEST.search(each) is not None for each in sentences)
    return asked >= LEAST_REQUESTS and 2 * asked >= len(sentences)


def _same_names(tools: Sequence[Tool]) -> Iterator[tuple[Tool, Tool]]:
    """Tools with the name of another server's; one word is no name that could be copied."""
    first: dict[tuple[str, ...], Tool] = {}
    for tool in tools:
        words = tuple(re.findall(r"[^\W_]+", HUMP.sub("_", tool.name).casefold()))
        if len(words) > 1 and (known := first.setdefault(words, tool)).server != tool.server:
            yield tool, known


def _copies(tools: Sequence[Tool]) -> Iterator[tuple[Tool, Tool]]:
    """Tools with a description that is nearly another server's, found by the rarest of its words."""
    words = [frozenset(WORD.findall(tool.description.casefold())) for tool in tools]
    having: defaultdict[str, list[int]] = defaultdict(list)
    for place, of_tool in enumerate(words):
        for word in of_tool:
            having[word].append(place)
    for place, of_tool in enumerate(words):
        if len(of_tool) >= LEAST_WORDS:
            original = _original(place, of_tool, words, having, tools)
            if original is not None:
                yield tools[place], tools[original]


def _original(
    place: int,
    of_tool: frozenset[str],
    words: Sequence[frozenset[str]],
    having: Mapping[str, Sequence[int]],
    tools: Sequence[Tool],
) -> int | None:
    """An earlier tool of another server that shares `SAME` of the words: one of its few rarest is then among them."""
    rarest = sorted(of_tool, key=lambda word: (len(having[word]), word))[: int((1 - SAME) * len(of_tool)) + 2]
    near = dict.fromkeys(other for word in rarest for other in having[word][:MOST_ALIKE] if other < place)
    for other in near:
        if tools[other].server != tools[place].server:
            shared = len(of_tool & words[other])
            if shared >= SAME * len(of_tool | words[other]) and len(words[other]) >= LEAST_WORDS:
                return other
    return None
