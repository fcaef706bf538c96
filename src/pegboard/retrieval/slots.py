"""Numbers that tools of a catalog keep while others come and go, and what a change of the catalog changed.

An index by slot has to be changed only where tools came or went; the places of all others may shift.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pegboard.cached_property import cached_property
from pegboard.model import Floats, Server, Tool
from pegboard.sequence_change import SequenceChange

Numbers = NDArray[np.intp]
LARGEST = 0.25
"""The share of a catalog from which on a change is none: building everything again costs as little."""
SMALL = 16
"""Tools that are always few enough."""


@dataclass(frozen=True)
class Slots:
    """The slot of each place of a catalog, shape (n,); ``size`` is one more than the largest slot ever given out.

    >>> slots = Slots(np.array([0, 2]), 3)
    >>> slots.in_order(np.array([7, 8, 9])), slots.places([2, 0]).tolist()
    (array([7, 9]), [0, 1])
    """

    of_place: Numbers
    size: int

    @classmethod
    def first(cls, tools: int) -> Slots:
        """Those of a catalog that is new: every tool's slot is its place."""
        return cls(np.arange(tools, dtype=np.intp), tools)

    @cached_property
    def place(self) -> Numbers:
        """The place of each slot, -1 where it is free, shape (size,)."""
        places = np.full(self.size, -1, np.intp)
        places[self.of_place] = np.arange(len(self.of_place))
        return places

    def in_order(self, values: Floats) -> Floats:
        """Values by slot, shape (size,), in catalog order, shape (n,)."""
        return values[self.of_place]

    def places(self, slots: Sequence[int] | NDArray[np.signedinteger]) -> Numbers:
        """The places of these slots, ascending."""
        return np.sort(self.place[np.asarray(slots, np.intp)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupant:
    """A tool in a slot, with its server if that is known."""

    slot: int
    tool: Tool
    server: Server | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogChange:
    """What came into a catalog and what left it; a tool that changed is in both. ``kept`` are the places that the
    tools which stay had before, -1 for those that came, shape (n,)."""

    slots: Slots
    kept: Numbers
    gone: Sequence[Occupant] = field(default=())
    new: Sequence[Occupant] = field(default=())


def change_of(
    slots: Slots,
    before: Sequence[Tool],
    servers_before: Mapping[str, Server],
    tools: Sequence[Tool],
    servers: Mapping[str, Server],
) -> CatalogChange | None:
    """The change from one catalog to another, whose tools take free slots; None if it is large, or changes the order.

    A tool stays if it is equal, and so is the description of its server.
    """
    kept = kept_places(before, tools, _redescribed(servers_before, servers))
    stays = kept[kept >= 0]
    gone = np.ones(len(before), np.bool_)
    gone[stays] = False
    arrived, left = np.flatnonzero(kept < 0), np.flatnonzero(gone)
    if len(arrived) + len(left) > max(SMALL, LARGEST * len(before)) or (np.diff(stays) < 0).any():
        return None
    of_place = np.empty(len(tools), np.intp)
    of_place[kept >= 0] = slots.of_place[stays]
    free = np.concatenate([slots.of_place[left], np.flatnonzero(slots.place < 0)])[: len(arrived)]
    more = np.arange(slots.size, slots.size + len(arrived) - len(free))
    of_place[arrived] = np.concatenate([free, more])
    return CatalogChange(
        slots=Slots(of_place, slots.size + len(more)),
        kept=kept,
        gone=_occupants(slots, left, before, servers_before),
        new=_occupants(Slots(of_place, slots.size + len(more)), arrived, tools, servers),
    )


def kept_places(before: Sequence[Tool], tools: Sequence[Tool], redescribed: Set[str] = frozenset()) -> Numbers:
    """For each tool the place before of an equal one of the same id, or -1; none of ``redescribed`` servers has one."""
    change = SequenceChange.of(tuple(before), tuple(tools))
    middle = _kept_between(change.middle(before), change.middle(tools))
    middle[middle >= 0] += change.start
    end = np.arange(len(before) - change.end, len(before))
    kept = np.concatenate([np.arange(change.start), middle, end]).astype(np.intp, copy=False)
    if redescribed:
        kept[[tool.server in redescribed for tool in tools]] = -1
    return kept


def _kept_between(before: Sequence[Tool], tools: Sequence[Tool]) -> Numbers:
    same = {id(tool): place for place, tool in enumerate(before)}
    kept = [same.get(id(tool), -1) for tool in tools]
    there = set(kept)
    known = {tool.id: place for place, tool in enumerate(before) if place not in there}
    for place, tool in enumerate(tools):
        if kept[place] < 0 and (earlier := known.get(tool.id)) is not None and before[earlier] == tool:
            kept[place] = earlier
    return np.array(kept, np.intp).reshape(len(tools))


def _redescribed(before: Mapping[str, Server], servers: Mapping[str, Server]) -> frozenset[str]:
    return frozenset(
        name for name, server in servers.items() if name in before and before[name].description != server.description
    )


def _occupants(
    slots: Slots, places: Numbers, tools: Sequence[Tool], servers: Mapping[str, Server]
) -> tuple[Occupant, ...]:
    return tuple(
        Occupant(slot=int(slots.of_place[place]), tool=tools[place], server=servers.get(tools[place].server))
        for place in places.tolist()
    )
