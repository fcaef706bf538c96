"""Categories by which a board is browsed. Every tool has exactly one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from pegboard.model import Floats, Server, Tool, ToolId
from pegboard.retrieval.clusters import cluster
from pegboard.retrieval.name_groups import groups_by_name
from pegboard.retrieval.name_words import distinct_labels, done_and_to_what
from pegboard.settings import CategoryMode

WHOLE = 20
"""A server of up to this many tools is one category (mode auto)."""
GOOD_COVERAGE = 0.6
GOOD_LARGEST = 0.6
"""A split is good if its groups cover this share of the tools, and the largest group has at most that share."""
DESCRIPTION = 120
SHOWN_WORDS = 5

NO_PATTERNS: Mapping[str, Sequence[str]] = MappingProxyType({})


def categories_of(
    tools: Sequence[Tool],
    mode: CategoryMode = "auto",
    patterns: Mapping[str, Sequence[str]] = NO_PATTERNS,
    vectors: Floats | None = None,
) -> Mapping[ToolId, str]:
    """The category of each tool, in the order of the tools.

    A configured pattern comes first, then the category stated by the server, then ``mode``: ``server`` is the server's
    name, ``prefix`` groups by words of names, ``clusters`` groups by meaning; ``auto`` gives servers of at most 20
    tools one category, and groups others by words if those groups are good, else by meaning. ``vectors`` has shape (n,
    d), rows of length 1 in the order of the tools. Parts of a server are named "server: group", at most 20 of them.
    """
    stated = [configured_category(tool.id, patterns) or tool.category for tool in tools]
    derived: dict[ToolId, str] = {}
    for server, places in _by_server(tools, stated).items():
        of_server = None if vectors is None else vectors[places]
        labels = _groups(server, [tools[place].name for place in places], mode, of_server)
        for place, label in zip(places, labels, strict=True):
            derived[tools[place].id] = f"{server}: {label}" if label else server
    return MappingProxyType({tool.id: given or derived[tool.id] for tool, given in zip(tools, stated, strict=True)})


def describe_category(tools: Sequence[Tool], server: Server | None = None) -> str:
    """A category on one line: the server's description if it is the whole server, else the verbs and nouns of its
    tools. A description that is only the server's title does not say what it is for.

    >>> names = ("create_issue", "list_issues", "close_issue")
    >>> describe_category([Tool(id=ToolId("github", name)) for name in names])
    'close, create, list: issue'
    """
    described = " ".join((server.description if server and server.description != server.title else "").split())
    if described:
        return described if len(described) <= DESCRIPTION else f"{described[:DESCRIPTION].rstrip()}…"
    verbs, nouns = done_and_to_what([tool.name for tool in tools])
    return ": ".join(filter(None, (", ".join(verbs[:SHOWN_WORDS]), ", ".join(nouns[:SHOWN_WORDS]))))


def configured_category(tool: ToolId, patterns: Mapping[str, Sequence[str]]) -> str | None:
    """The first configured category with a pattern that matches the tool."""
    return next((name for name, of_name in patterns.items() if any(map(tool.fits, of_name))), None)


def _by_server(tools: Sequence[Tool], stated: Sequence[str | None]) -> dict[str, list[int]]:
    """Places of the tools without a stated category, by server, sorted by name: the order of a listing is arbitrary."""
    places: dict[str, list[int]] = {}
    for place in sorted(range(len(tools)), key=lambda place: tools[place].id):
        if not stated[place]:
            places.setdefault(tools[place].server, []).append(place)
    return places


def _groups(server: str, names: Sequence[str], mode: CategoryMode, vectors: Floats | None) -> Sequence[str]:
    """The label of each tool's group, empty if the server itself is the category."""
    whole = [""] * len(names)
    if mode == "server" or (mode == "auto" and len(names) <= WHOLE):
        return whole
    by_name = groups_by_name(names, server) if mode != "clusters" else whole
    if mode == "prefix" or (mode == "auto" and _is_good(by_name)):
        return by_name if len(set(by_name)) > 1 else whole
    return whole if vectors is None else _clusters(server, names, vectors)


def _is_good(labels: Sequence[str]) -> bool:
    sizes = Counter(filter(None, labels))
    return (
        len(sizes) > 1
        and sizes.total() >= GOOD_COVERAGE * len(labels)
        and max(sizes.values()) <= GOOD_LARGEST * len(labels)
    )


def _clusters(server: str, names: Sequence[str], vectors: Floats) -> Sequence[str]:
    """Clusters, labelled with the words that distinguish them."""
    assigned = cluster(vectors)
    groups: list[list[str]] = [[] for _ in np.unique(assigned)]
    for name, number in zip(names, assigned, strict=True):
        groups[number].append(name)
    labels = distinct_labels(groups, server) if len(groups) > 1 else [""]
    return [labels[number] for number in assigned]
