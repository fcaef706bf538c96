"""Servers whose tools crowd out those of others: by copied descriptions, copied names, or texts built to be found.

Tools are ranked by their own texts, so a tool that copies another's text, or the wording of users' requests, is found
instead of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pegboard.model import Tool, ToolId
from pegboard.retrieval import rank_attacks
from pegboard.retrieval.rank_attacks import Kind

LEAST_WORDS = 6
"""Minimum words of a description for a match to be no coincidence."""
SAME = 0.8
"""Share of common words from which on one description counts as a copy of the other."""
MOST_ALIKE = 40
"""Maximum tools per rare word that a tool is compared with."""
COPIED_NAMES, COPIED_OF_MANY = 2, 4
"""Minimum tools with names of one other server, and of several others together, for that to be no coincidence."""
SEVERAL = "several servers"

HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """``tools`` of ``server`` that crowd out those of server ``of``, or of all servers if that is empty.

    ``damped`` is whether any of them is ranked behind others for it (`pegboard.retrieval.rank_attacks`).
    """

    server: str
    kind: Kind
    tools: tuple[ToolId, ...]
    of: str = ""
    damped: bool = False


def crowds(tools: Sequence[Tool]) -> list[Crowd]:
    """The crowds among the tools of all servers. Of two with the same text, the later one counts as the copy."""
    found: defaultdict[tuple[str, Kind, str], list[ToolId]] = defaultdict(list)
    for tool, original in _copies(tools):
        found[tool.server, "copied-description", original.server].append(tool.id)
    for tool, original in _same_names(tools):
        found[tool.server, "copied-name", original.server].append(tool.id)
    few = [key for key, ids in found.items() if key[1] == "copied-name" and len(ids) < COPIED_NAMES]
    for key in few:
        found[key[0], "copied-name", SEVERAL] += found.pop(key)
    kept = {key: ids for key, ids in found.items() if key[2] != SEVERAL or len(ids) >= COPIED_OF_MANY}
    suspects = rank_attacks.suspects(tools)
    for key, suspected in _unnoted(suspects, kept).items():
        kept.setdefault(key, []).extend(suspected)
    return [
        Crowd(server=server, kind=kind, tools=tuple(ids), of=of, damped=not suspects.keys().isdisjoint(ids))
        for (server, kind, of), ids in kept.items()
    ]


def _unnoted(
    suspects: Mapping[ToolId, Kind], found: Mapping[tuple[str, Kind, str], Sequence[ToolId]]
) -> Mapping[tuple[str, Kind, str], list[ToolId]]:
    """The suspected tools that are in no crowd, by server and kind."""
    noted = {tool for ids in found.values() for tool in ids}
    rest: defaultdict[tuple[str, Kind, str], list[ToolId]] = defaultdict(list)
    for tool, kind in suspects.items():
        if tool not in noted:
            rest[tool.server, kind, ""].append(tool)
    return rest


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
