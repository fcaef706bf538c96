"""Builds the search over a registry's snapshot from the parts of a board."""

from __future__ import annotations

from dataclasses import replace

from pegboard.compose.board_builder import build_routing
from pegboard.compose.board_parts import Parts
from pegboard.registry.server_search import ServerSearch, catalog_of
from pegboard.registry.snapshot import Snapshot
from pegboard.settings import Settings
from pegboard.telemetry.event_log import FanOut

NOT_OF_TOOLS = (
    *("calibration", "recall", "threshold", "k", "budget", "always_available", "aliases", "rules", "summaries"),
    *("category_patterns", "category_descriptions", "index", "chroma", "pgvector", "qdrant"),
)
"""Options of the board of tools, which say nothing about servers of a registry."""


def server_search(settings: Settings, snapshot: Snapshot, parts: Parts, *, patient: bool) -> ServerSearch:
    """The search of profile `hybrid` with the configured encoder. Its decisions are none of the board of tools: they
    are no events, and no habit is learned from them. ``patient=False`` ranks by words until servers are embedded."""
    plain = {name: Settings.model_fields[name].get_default(call_default_factory=True) for name in NOT_OF_TOOLS}
    plain |= {"profile": "hybrid"}
    own = replace(parts, events=FanOut([]), learner=None, index=lambda name: None, fallback_index=lambda name: None)
    board = build_routing(settings.model_copy(update=plain), catalog_of(snapshot.listings), parts=own, patient=patient)
    return ServerSearch(snapshot, board)
