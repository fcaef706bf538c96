"""What a caller sees of a catalog, by a mask of its tools; each mask is worked out once."""

from __future__ import annotations

from functools import lru_cache

from pegboard.catalog import Catalog
from pegboard.model import Mask, ToolId
from pegboard.routing.pool import Pool, summary_pool

MOST = 16
"""Masks that are remembered: rights and states are few."""


class Visible:
    """Masks have shape (n,), in catalog order; ``budget`` is the tokens of a pool, None for no limit."""

    def __init__(self, catalog: Catalog, budget: int | None) -> None:
        self._catalog = catalog
        self._budget = budget
        self._pool = lru_cache(maxsize=MOST)(self._render)
        self._ids = lru_cache(maxsize=MOST)(self._named)

    def pool(self, mask: Mask) -> Pool:
        """The summary of these tools (phase 1)."""
        return self._pool(mask.tobytes())

    def ids(self, mask: Mask) -> frozenset[ToolId]:
        return self._ids(mask.tobytes())

    def _render(self, mask: bytes) -> Pool:
        catalog = self._catalog
        tools = [tool for tool, shown in zip(catalog.tools, mask, strict=True) if shown]
        return summary_pool(tools, catalog.servers, catalog.counter, self._budget)

    def _named(self, mask: bytes) -> frozenset[ToolId]:
        return frozenset(tool.id for tool, shown in zip(self._catalog.tools, mask, strict=True) if shown)
