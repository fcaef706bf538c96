"""The composition root: the only place that chooses parts and puts them together."""

from pegboard.compose.board_builder import as_configured, boards_of_requests, build_routing, rules, summaries
from pegboard.compose.board_parts import Parts, default_parts, events_and, opened_parts
from pegboard.compose.encoder_profile import QUERY_CACHE, calibration, local_fit, profile, space, warn_of_threshold
from pegboard.compose.vectors import collection, configured_encoder, embedding_service, in_process

__all__ = [
    "QUERY_CACHE",
    "Parts",
    "as_configured",
    "boards_of_requests",
    "build_routing",
    "calibration",
    "collection",
    "configured_encoder",
    "default_parts",
    "embedding_service",
    "events_and",
    "in_process",
    "local_fit",
    "opened_parts",
    "profile",
    "rules",
    "space",
    "summaries",
    "warn_of_threshold",
]
