"""Servers whose tools crowd out those of others: by copied descriptions, copied names, or descriptions made of
requests.

Tools are ranked by their own texts, so a tool that copies another's text, or the wording of users' requests, is found
instead of it.
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
"""Minimum words of a description for a match to be no coincidence."""
SAME = 0.8
"""Share of common words from which on one description counts as a copy of the other."""
MOST_ALIKE = 40
"""Maximum tools per rare word that a tool is compared with."""
COPIED_NAMES, COPIED_OF_MANY = 2, 4
"""Minimum tools with names of one other server, and of several others together, for that to be no coincidence."""
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
"""How people phrase requests. A tool's description says what the tool does, and does not say "me" or "my"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """``tools`` of ``server`` that crowd out those of server ``of``, or of all servers if that is empty."""

    server: str
    kind: Kind
    tools: tuple[ToolId, ...]
    of: str = ""


def crowds(tools: Sequence[Tool]) -> list[Crowd]:
    """The crowds among the tools of all servers. Of two with the same text, the later one counts as the copy."""
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
    """Whether at least three of its sentences, and at least half of them, are phrased as users' requests.

    >>> is_made_of_requests("Find me a flight to Oslo. What's on my calendar today? Please order a pizza.")
    True
    >>> is_made_of_requests("Finds flights between two airports. Returns prices. Use it when a user asks for one.")
    False
    """
    sentences = [each for each in SENTENCE.split(description.strip()) if WORD.search(each)]
    asked = sum(REQUEST.search(each) is not None for each in sentences)
    return asked >= LEAST_REQUESTS and 2 * asked >= len(sentences)


def _same_names(tools: Sequence[Tool]) -> Iterator[tuple[Tool, Tool]]:
    """Tools with the name of another server's tool; names of one word do not count."""
    first: dict[tuple[str, ...], Tool] = {}
    for tool in tools:
        words = tuple(re.findall(r"[^\W_]+", HUMP.sub("_", tool.name).casefold()))
        if len(words) > 1 and (known := first.setdefault(words, tool)).server != tool.server:
            yield tool, known


def _copies(tools: Sequence[Tool]) -> Iterator[tuple[Tool, Tool]]:
    """Tools whose description nearly equals one of another server, found by its rarest words."""
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
    """An earlier tool of another server that shares `SAME` of the words, and so at least one of the few rarest."""
    rarest = sorted(of_tool, key=lambda word: (len(having[word]), word))[: int((1 - SAME) * len(of_tool)) + 2]
    near = dict.fromkeys(other for word in rarest for other in having[word][:MOST_ALIKE] if other < place)
    for other in near:
        if tools[other].server != tools[place].server:
            shared = len(of_tool & words[other])
            if shared >= SAME * len(of_tool | words[other]) and len(words[other]) >= LEAST_WORDS:
                return other
    return None
