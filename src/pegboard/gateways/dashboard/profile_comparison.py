"""One query under every profile: what each would offer of the board, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pegboard.catalog import Catalog
from pegboard.compose import build_routing
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.model import ToolId, Turn
from pegboard.routing import PROFILES
from pegboard.routing.explain import Explanation
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEvents

OWN_SCALE = ("threshold", "recall", "calibration")
"""Options on the scale of the configured profile, which mean nothing to the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a profile has a tool: ``rank`` from 1, None if it does not rank it at all."""

    rank: int | None
    score: float
    offered: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTool:
    tool: ToolId
    places: Sequence[Place]
    """One for each profile, in the order of the explanations."""


class ProfileComparison:
    """Boards of all profiles over the host's tools. They are made when they are first asked for, and again when the
    tools have changed; vectors come from where the gateway keeps its own."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._made: tuple[Catalog, list[RoutingBoard]] | None = None

    async def explained(self, turn: Turn) -> list[Explanation]:
        """The explanation of each profile, in the order of `PROFILES`. Raises PegboardError."""
        return [await board.explain(turn) for board in self._boards()]

    def _boards(self) -> list[RoutingBoard]:
        catalog = self._host.gateway().view.board.catalog
        if self._made is None or self._made[0] is not catalog:
            self._made = (catalog, [self._board(name, catalog) for name in PROFILES])
        return self._made[1]

    def _board(self, profile: str, catalog: Catalog) -> RoutingBoard:
        settings = self._host.settings
        cleared = {} if profile == settings.profile else dict.fromkeys(OWN_SCALE)
        return build_routing(
            settings.model_copy(update={"profile": profile, **cleared}),
            catalog,
            parts=replace(self._host.parts, events=MemoryEvents()),
            connections=self._host.fleet.connections,
            shared=self._host.indexes,
        )


def compared(explanations: Sequence[Explanation], most: int) -> list[ComparedTool]:
    """The best tools of all profiles, those first that any has in front."""
    ranks = [{each.tool: rank for rank, each in enumerate(of.order, start=1)} for of in explanations]
    best = {tool for of in explanations for tool in _first(of, most)}
    ordered = sorted(best, key=lambda tool: (min(rank.get(tool, len(rank) + 1) for rank in ranks), tool))
    return [
        ComparedTool(tool=tool, places=[_place(of, rank, tool) for of, rank in zip(explanations, ranks, strict=True)])
        for tool in ordered[:most]
    ]


def _first(explanation: Explanation, most: int) -> Iterable[ToolId]:
    return [each.tool for each in explanation.order[:most]]


def _place(explanation: Explanation, ranks: dict[ToolId, int], tool: ToolId) -> Place:
    said, rank = explanation.of_tool(tool), ranks.get(tool)
    return Place(
        rank=rank,
        score=explanation.order[rank - 1].score if rank is not None else 0.0,
        offered=said.status == "active",
        why=said.why,
    )
