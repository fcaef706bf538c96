"""The price of a tool's call, and its source."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pegboard.model import Tool

Source = Literal["config", "_meta", "tier", "free"]

LOW_TIER, HIGH_TIER = 0.00125, 0.0225
"""The mean of each of EHRR's tiers, USD a call: U(0, 0.0025) and N(0.0225, 0.005²) (section V)."""
GROUNDING = re.compile(
    r"(?:web|internet|online|news|image)[\s_-]*search|search[\s_-]*(?:the[\s_-]*)?(?:web|internet|engine|online)"
    r"|geo(?:cod|spatial|locat)|\bmaps?\b|directions|places|\bcrawl|\bscrap|\bbrowse|\bground",
    re.IGNORECASE,
)
"""Words that put a tool into EHRR's tier of high complexity: web search and geospatial grounding."""


class Price(NamedTuple):
    """USD a call, and the source of the price. A tool without a price is free."""

    usd: float
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices from three sources, in this order: the first of ``patterns`` on ``server/name`` or the name that matches,
    the tool's `_meta` (`pegboard/price_usd`, or any vendor's `…/price_usd`), and with ``tiers``, EHRR's two tiers."""

    patterns: Mapping[str, float] = field(default_factory=dict)
    tiers: bool = False

    def of(self, tool: Tool) -> Price:
        """
        >>> from pegboard.testing import fake_tool
        >>> PriceList(patterns={"fake/*": 0.01}).of(fake_tool("find"))
        Price(usd=0.01, source='config')
        >>> PriceList(tiers=True).of(fake_tool("find", "Search the web."))
        Price(usd=0.0225, source='tier')
        >>> PriceList().of(fake_tool("find"))
        Price(usd=0.0, source='free')
        """
        for pattern, usd in self.patterns.items():
            if tool.id.fits(pattern):
                return Price(usd, "config")
        stated = stated_usd(tool, "price_usd")
        if stated is not None:
            return Price(stated, "_meta")
        if self.tiers:
            return Price(HIGH_TIER if GROUNDING.search(f"{tool.name} {tool.description}") else LOW_TIER, "tier")
        return Price(0.0, "free")


def stated_usd(tool: Tool, name: str) -> float | None:
    """The value of this name in the tool's `_meta`: ours first, then any vendor's. Invalid numbers are ignored."""
    meta: Any = tool.definition.get("_meta")
    if not isinstance(meta, Mapping):
        return None
    keys = (name, f"pegboard/{name}", f"io.pegboard/{name}", *sorted(key for key in meta if key.endswith(f"/{name}")))
    for key in keys:
        value = meta.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= sys.float_info.max:
            return float(value)
    return None
