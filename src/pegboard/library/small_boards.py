"""Boards so small that choosing saves little, and may leave out the one tool that is needed: they pass whole."""

from __future__ import annotations

from collections.abc import Collection

from pegboard.catalog import Catalog
from pegboard.model import ToolId
from pegboard.settings import Settings

HOW_MANY = frozenset({"profile", "k", "threshold", "calibration", "recall", "budget"})
"""Whoever sets one of these has said how many tools a turn gets."""


def passes_whole(tools: Collection[ToolId], catalog: Catalog, settings: Settings) -> bool:
    """Whether these are fewer than ``eager_tools``, or take fewer than ``eager_tokens``, and nothing says how many a
    turn gets."""
    if HOW_MANY & settings.model_fields_set:
        return False
    if len(tools) < settings.eager_tools:
        return True
    return sum(catalog.token_counts[catalog.position[tool]] for tool in tools) < settings.eager_tokens
