"""Finds what a request names in a catalog: tools and servers by name, objects by words of tool names.

Scores measure how well a tool fits the whole request, so five tools of one object can crowd out another object that the
request names just as clearly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.model import Tool
from pegboard.retrieval.name_words import words_of
from pegboard.retrieval.words import raw_words, stem

BROAD = 0.4
"""Share of the names from which on a word names no object."""
IDENTIFIER = re.compile(r"\w+(?:[_.-]\w+)+|[a-z]+[A-Z]\w*")
"""Words in the spelling of tool names, such as `create_issue`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mentioned:
    """Places in a catalog: the named ``tools``, and all tools of each named object and server."""

    tools: frozenset[int] = frozenset()
    objects: tuple[frozenset[int], ...] = ()
    servers: tuple[frozenset[int], ...] = ()

    @property
    def groups(self) -> tuple[frozenset[int], ...]:
        return self.objects + self.servers

    def __bool__(self) -> bool:
        return bool(self.tools or self.objects or self.servers)


NOTHING = Mentioned()
Key = frozenset[str]
"""The stems of the words that name an object or a server."""
Groups = Mapping[Key, frozenset[int]]


class Mentions:
    """Finds what requests name in one catalog."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._by_name: dict[str, list[int]] = {}
        for place, tool in enumerate(tools):
            self._by_name.setdefault(tool.name.casefold(), []).append(place)
        self._objects = _objects([tool.name for tool in tools])
        self._servers = _servers([tool.server for tool in tools])
        self._objects_by_word = _by_word(self._objects)
        self._servers_by_word = _by_word(self._servers)

    def of(self, query: str) -> Mentioned:
        """What this text names. An object is named by all of its words, or by a word that no other object has."""
        words = frozenset(stem(word) for word in raw_words(query))
        whole = _named(self._objects_by_word, words)
        spoken = frozenset(word for key in whole for word in key)
        alone = [keys[0] for word in words - spoken if len(keys := self._objects_by_word.get(word, ())) == 1]
        servers = _named(self._servers_by_word, words)
        return Mentioned(
            tools=frozenset(
                place for each in IDENTIFIER.findall(query) for place in self._by_name.get(each.casefold(), ())
            ),
            objects=tuple(self._objects[key] for key in dict.fromkeys([*whole, *sorted(alone, key=sorted)])),
            servers=tuple(self._servers[key] for key in servers),
        )


def _named(by_word: Mapping[str, Sequence[Key]], words: Key) -> list[Key]:
    """The keys whose words all occur, in an order that does not depend on hashes."""
    found = {key for word in words for key in by_word.get(word, ()) if key <= words}
    return sorted(found, key=sorted)


def _by_word(groups: Groups) -> Mapping[str, Sequence[Key]]:
    found: dict[str, list[Key]] = {}
    for key in groups:
        for word in key:
            found.setdefault(word, []).append(key)
    return found


def _objects(names: Sequence[str]) -> Groups:
    """The tools of each object, by the words for it in their names."""
    words = [frozenset(word.stem for word in words_of(name) if word.is_about) for name in names]
    uses = Counter(word for of_name in words for word in of_name)
    return _grouped(
        [frozenset(word for word in of_name if uses[word] < max(2, BROAD * len(names))) for of_name in words]
    )


def _servers(names: Sequence[str]) -> Groups:
    """The tools of each server; empty if there is only one, since naming it distinguishes nothing."""
    found = _grouped([frozenset(word.stem for word in words_of(name) if word.names_something) for name in names])
    return found if len(found) > 1 else {}


def _grouped(keys: Sequence[Key]) -> Groups:
    found: dict[Key, set[int]] = {}
    for place, key in enumerate(keys):
        if key:
            found.setdefault(key, set()).add(place)
    return {key: frozenset(places) for key, places in found.items()}
