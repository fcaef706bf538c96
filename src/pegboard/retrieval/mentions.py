"""Finds what a request names in a catalog: tools and servers by name, objects by words of tool names.

Scores measure how well a tool fits the whole request, so five tools of one object can crowd out another object that the
request names just as clearly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

from pegboard.model import Tool
from pegboard.retrieval.key_table import KeyTable
from pegboard.retrieval.name_words import words_of
from pegboard.retrieval.slots import CatalogChange, Slots
from pegboard.retrieval.words import LONGEST_NAME, raw_words, remembered, stem

BROAD = 0.4
"""Share of the names from which on a word names no object."""
IDENTIFIER = re.compile(
    r"(?<!\w)(?:\w+(?:[.-]\w+)+|\w[^\W_]*_\w+)"  # only where a word begins: a long one would be read once a letter
    r"|(?<![a-z])[a-z]+[A-Z]\w*"
)
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
K = TypeVar("K")
M = TypeVar("M")
REMEMBERED = 32_768
"""Names whose words for objects are remembered."""


class Mentions:
    """Finds what requests name in one catalog."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._slots = Slots.first(len(tools))
        self._tools = dict(enumerate(tools))
        self._by_name = KeyTable((slot, (tool.name.casefold(),)) for slot, tool in self._tools.items())
        self._by_server = _grouped((tool.server, slot) for slot, tool in self._tools.items())
        self._uses = Counter(word for tool in tools for word in _about(tool.name))
        self._broad = self._broad_words()
        self._objects = _grouped(self._object(slot, tool) for slot, tool in self._tools.items())
        self._objects_by_word = _by_word(self._objects)
        self._servers = self._server_keys()
        self._servers_by_word = _by_word(self._servers)

    def changed(self, change: CatalogChange) -> Mentions:
        """What requests name in the changed catalog."""
        other = copy(self)
        other._slots, other._tools, other._uses = change.slots, self._tools.copy(), self._uses.copy()
        for each in change.gone:
            del other._tools[each.slot]
            other._uses.subtract(_about(each.tool.name))
        for each in change.new:
            other._tools[each.slot] = each.tool
            other._uses.update(_about(each.tool.name))
        gone, new = [(each.slot, each.tool) for each in change.gone], [(each.slot, each.tool) for each in change.new]
        other._by_name = self._by_name.changed(
            [(at, (of.name.casefold(),)) for at, of in gone], [(at, (of.name.casefold(),)) for at, of in new]
        )
        other._by_server = _regrouped(
            self._by_server, [(of.server, at) for at, of in gone], [(of.server, at) for at, of in new]
        )
        other._broad = other._broad_words()
        if other._broad == self._broad:
            other._objects = _regrouped(
                self._objects, [self._object(*each) for each in gone], [self._object(*each) for each in new]
            )
        else:
            other._objects = _grouped(other._object(slot, tool) for slot, tool in other._tools.items())
        if other._objects.keys() != self._objects.keys():
            other._objects_by_word = _by_word(other._objects)
        if other._by_server.keys() != self._by_server.keys():
            other._servers = other._server_keys()
            other._servers_by_word = _by_word(other._servers)
        return other

    def _broad_words(self) -> Key:
        """The words that so many names have that they name no object."""
        least = max(2, BROAD * len(self._tools))
        return frozenset(word for word, times in self._uses.items() if times >= least)

    def _object(self, slot: int, tool: Tool) -> tuple[Key, int]:
        return _about(tool.name) - self._broad, slot

    def _server_keys(self) -> Mapping[Key, frozenset[str]]:
        """The servers by the words of their names; empty if there is only one: naming it distinguishes nothing."""
        found = _grouped((_naming(server), server) for server in self._by_server)
        return found if len(found) > 1 else {}

    def _places(self, slots: Iterable[int]) -> frozenset[int]:
        return frozenset(self._slots.place[list(slots)].tolist())

    def of(self, query: str) -> Mentioned:
        """What this text names. An object is named by all of its words, or by a word that no other object has."""
        words = frozenset(stem(word) for word in raw_words(query))
        whole = _named(self._objects_by_word, words)
        spoken = frozenset(word for key in whole for word in key)
        alone = [keys[0] for word in words - spoken if len(keys := self._objects_by_word.get(word, ())) == 1]
        servers = _named(self._servers_by_word, words)
        return Mentioned(
            tools=self._places(
                slot for each in IDENTIFIER.findall(query) for slot in self._by_name.of(each.casefold()).tolist()
            ),
            objects=tuple(
                self._places(self._objects[key]) for key in dict.fromkeys([*whole, *sorted(alone, key=sorted)])
            ),
            servers=tuple(
                self._places(slot for server in self._servers[key] for slot in self._by_server[server])
                for key in servers
            ),
        )


def _named(by_word: Mapping[str, Sequence[Key]], words: Key) -> list[Key]:
    """The keys whose words all occur, in an order that does not depend on hashes."""
    found = {key for word in words for key in by_word.get(word, ()) if key <= words}
    return sorted(found, key=sorted)


def _by_word(groups: Iterable[Key]) -> Mapping[str, Sequence[Key]]:
    found: dict[str, list[Key]] = {}
    for key in groups:
        for word in key:
            found.setdefault(word, []).append(key)
    return found


@remembered(REMEMBERED, LONGEST_NAME)
def _about(name: str) -> Key:
    """The stems of a tool name's words for objects."""
    return frozenset(word.stem for word in words_of(name) if word.is_about)


def _naming(server: str) -> Key:
    return frozenset(word.stem for word in words_of(server) if word.names_something)


def _grouped(members: Iterable[tuple[K, M]]) -> dict[K, frozenset[M]]:
    """Members by key; what has an empty key is left out."""
    found: dict[K, set[M]] = {}
    for key, member in members:
        if key:
            found.setdefault(key, set()).add(member)
    return {key: frozenset(of_key) for key, of_key in found.items()}


def _regrouped(
    groups: Mapping[K, frozenset[M]], gone: Sequence[tuple[K, M]], new: Sequence[tuple[K, M]]
) -> dict[K, frozenset[M]]:
    """The groups without the members that are gone, and with the new ones; empty groups are left out."""
    found = dict(groups)
    for key, member in gone:
        if key:
            found[key] -= {member}
    for key, member in new:
        if key:
            found[key] = found.get(key, frozenset()) | {member}
    for key, _ in gone:
        if key in found and not found[key]:
            del found[key]
    return found
