"""The composition root: the only place where parts are chosen and put together."""

from pegboard.compose.boards import boards_of_requests, build
from pegboard.compose.configured import as_configured, rules, summaries
from pegboard.compose.encoders import configured_encoder, embedding_service, in_process
from pegboard.compose.fitted import QUERY_CACHE, calibration, local_fit, profile, space, warn_of_threshold
from pegboard.compose.indexes import collection
from pegboard.compose.parts import Parts, default_parts, events_and, opened_parts

__all__ = [
    "QUERY_CACHE",
    "Parts",
    "as_configured",
    "boards_of_requests",
    "build",
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
