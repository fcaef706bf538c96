"""Which tools of a catalog have texts that are built to be found (`rank_attacks`), changed where the catalog changed.

A verdict depends on the tool's own texts, on the tools that share its name, its description or a sentence with it, and
on the other tools of its server: only those of what came or went are looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pegboard.model import Mask, Tool
from pegboard.retrieval import rank_attacks
from pegboard.retrieval.key_table import KeyTable
from pegboard.retrieval.rank_attacks import Key
from pegboard.retrieval.slots import CatalogChange, Occupant, Slots

OWN, NAME, DESCRIPTION, SENTENCES = 1, 2, 4, 8
"""Why a tool is suspected, as bits: its own texts, a copied name, a copied description, others' sentences."""


@dataclass(frozen=True, slots=True)
class ServerCount:
    """Of one server's tools: how many there are and how many are suspected, how many sentences ask, of how many."""

    tools: int = 0
    suspected: int = 0
    asked: int = 0
    sentences: int = 0

    def with_tool(self, tool: Tool, times: int) -> ServerCount:
        """With a tool that came (1) or without one that went (-1)."""
        asked, sentences = rank_attacks.requests_of(tool.description)
        return replace(
            self,
            tools=self.tools + times,
            asked=self.asked + times * asked,
            sentences=self.sentences + times * sentences,
        )

    @property
    def is_whole(self) -> bool:
        """Whether the server is suspected as a whole."""
        asks = not self.suspected and rank_attacks.are_requests(self.asked, self.sentences)
        return (self.tools if asks else self.suspected) >= max(2, rank_attacks.WHOLE * self.tools)


class SuspectIndex:
    """The same tools as those of `rank_attacks.suspects`."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._slots = Slots.first(len(tools))
        self._tools = tools
        self._names = KeyTable((slot, _some(rank_attacks.name_key(tool))) for slot, tool in enumerate(tools))
        self._texts = KeyTable((slot, _some(rank_attacks.description_key(tool))) for slot, tool in enumerate(tools))
        self._sentences = KeyTable((slot, _sentences(tool)) for slot, tool in enumerate(tools))
        self._members = KeyTable((slot, (tool.server,)) for slot, tool in enumerate(tools))
        self._why: NDArray[np.uint8] = np.zeros(len(tools), np.uint8)
        self._counts: dict[str, ServerCount] = {}
        self._whole: frozenset[str] = frozenset()
        for tool in tools:
            self._count(tool, 1)
        first = {id(tool): slot for slot, tool in enumerate(tools)}
        own = (tool for tool in tools if rank_attacks.own_kind(tool.name, tool.description) is not None)
        for bit, found in (
            (OWN, own),
            (NAME, rank_attacks.copied_names(tools)),
            (DESCRIPTION, rank_attacks.copied_descriptions(tools)),
            (SENTENCES, rank_attacks.put_together(tools)),
        ):
            for tool in found:
                self._mark(first[id(tool)], tool.server, bit, is_so=True)
        self._judge(self._counts)

    @property
    def mask(self) -> Mask:
        """Which tools are suspected, in catalog order, shape (n,)."""
        suspected = self._why != 0
        for server in self._whole:
            suspected[self._members.of(server)] = True
        return np.asarray(suspected[self._slots.of_place])

    def changed(self, change: CatalogChange, tools: Sequence[Tool]) -> SuspectIndex:
        """That of the changed catalog, whose tools these are."""
        other = copy(self)
        other._slots, other._tools, other._counts = change.slots, tools, self._counts.copy()
        other._why = np.zeros(change.slots.size, np.uint8)
        other._why[: len(self._why)] = self._why
        other._names = self._names.changed(*_keys(change, lambda tool: _some(rank_attacks.name_key(tool))))
        other._texts = self._texts.changed(*_keys(change, lambda tool: _some(rank_attacks.description_key(tool))))
        other._sentences = self._sentences.changed(*_keys(change, _sentences))
        other._members = self._members.changed(*_keys(change, lambda tool: (tool.server,)))
        touched = [each.tool for each in (*change.gone, *change.new)]
        for each in change.gone:
            for bit in (OWN, NAME, DESCRIPTION, SENTENCES):
                other._mark(each.slot, each.tool.server, bit, is_so=False)
            other._count(each.tool, -1)
        for each in change.new:
            other._count(each.tool, 1)
            is_so = rank_attacks.own_kind(each.tool.name, each.tool.description) is not None
            other._mark(each.slot, each.tool.server, OWN, is_so=is_so)
        servers = {tool.server for tool in touched}
        names = {key for tool in touched for key in _some(rank_attacks.name_key(tool))}
        servers |= other._compare(other._names, names, NAME, rank_attacks.copied_names_in)
        texts = {key for tool in touched for key in _some(rank_attacks.description_key(tool))}
        servers |= other._compare(other._texts, texts, DESCRIPTION, rank_attacks.copied_descriptions_in)
        servers |= other._trace(self, change, {key for tool in touched for key in _sentences(tool)})
        other._judge(servers)
        return other

    def _compare(
        self, table: KeyTable, keys: Iterable[Key], bit: int, copies: Callable[[Sequence[Tool]], Iterator[Tool]]
    ) -> set[str]:
        """Look again at the tools that share one of these keys; returns their servers."""
        servers: set[str] = set()
        for key in keys:
            places = self._slots.places(table.of(key))
            same = [self._tools[place] for place in places.tolist()]
            found = {id(tool) for tool in copies(same)}
            for place, tool in zip(places.tolist(), same, strict=True):
                self._mark(int(self._slots.of_place[place]), tool.server, bit, is_so=id(tool) in found)
                servers.add(tool.server)
        return servers

    def _trace(self, before: SuspectIndex, change: CatalogChange, keys: Iterable[Key]) -> set[str]:
        """Look again at the new tools, and at those with a sentence that now is another server's; returns their
        servers."""
        slots = {each.slot for each in change.new}
        for key in keys:
            if before._origin(key) != self._origin(key):
                slots.update(self._sentences.of(key).tolist())
        servers: set[str] = set()
        for slot in slots:
            tool = self._tools[self._slots.place[slot]]
            origins = [self._origin(key) or "" for key in _sentences(tool)]
            self._mark(slot, tool.server, SENTENCES, is_so=rank_attacks.is_put_together(origins, tool.server))
            servers.add(tool.server)
        return servers

    def _origin(self, sentence: Key) -> str | None:
        """The server of the first tool with a sentence."""
        slots = self._sentences.of(sentence)
        return self._tools[self._slots.place[slots].min()].server if len(slots) else None

    def _count(self, tool: Tool, times: int) -> None:
        self._counts[tool.server] = self._counts.get(tool.server, ServerCount()).with_tool(tool, times)

    def _mark(self, slot: int, server: str, bit: int, *, is_so: bool) -> None:
        """Set or clear a reason, and count the server's suspected tools."""
        before = int(self._why[slot])
        after = before | bit if is_so else before & ~bit
        if before != after:
            self._why[slot] = after
            count = self._counts[server]
            more = (after != 0) - (before != 0)
            self._counts[server] = replace(count, suspected=count.suspected + more)

    def _judge(self, servers: Iterable[str]) -> None:
        """Find out again whether these servers are suspected as a whole; those without tools are forgotten."""
        looked_at = set(servers)
        for server in [each for each in looked_at if not self._counts[each].tools]:
            del self._counts[server]
        whole = {server for server in looked_at if server in self._counts and self._counts[server].is_whole}
        self._whole = (self._whole - looked_at) | whole


def _sentences(tool: Tool) -> tuple[Key, ...]:
    return rank_attacks.sentences(tool.description)


def _some(key: Key | None) -> tuple[Key, ...]:
    return () if key is None else (key,)


def _keys(
    change: CatalogChange, keys: Callable[[Tool], Iterable[Key | str]]
) -> tuple[list[tuple[int, Iterable[Key | str]]], list[tuple[int, Iterable[Key | str]]]]:
    def rows(occupants: Sequence[Occupant]) -> list[tuple[int, Iterable[Key | str]]]:
        return [(each.slot, keys(each.tool)) for each in occupants]

    return rows(change.gone), rows(change.new)
