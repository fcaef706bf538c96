"""What EHRR's authors report (EHRR, tables VI to VIII and section V C), with Qwen-Plus and with Claude Sonnet 4."""

from __future__ import annotations

from collections.abc import Mapping

OVER_RAG: Mapping[str, tuple[float, float]] = {
    "success": (1.120, 1.360),
    "invalid_calls": (-0.547, -0.586),
    "tokens": (-0.330, -0.124),
    "cost_usd": (-0.359, -0.519),
}
"""By how much EHRR differs from RAG-MCP."""
SUCCESS_BY_CATEGORY: Mapping[str, tuple[float, float]] = {
    "Finance": (0.667, 0.714),
    "Leisure": (0.286, 0.286),
    "Lifestyle": (0.533, 0.733),
    "Office": (0.516, 0.742),
    "Shopping": (0.333, 0.444),
    "Travel": (0.500, 0.583),
}
OVER_RAG_BY_CATEGORY: Mapping[str, tuple[float, float]] = {
    "Finance": (1.444, 1.000),
    "Leisure": (0.333, 3.000),
    "Lifestyle": (1.000, 2.667),
    "Office": (1.286, 2.286),
    "Shopping": (10.000, 0.333),
    "Travel": (0.500, 0.167),
}
"""Of success."""
MRR: Mapping[str, float] = {
    "ehrr": 0.41,
    "ehrr_no_auction": 0.34,
    "ehrr_no_execution": 0.30,
    "ehrr_no_hierarchy": 0.27,
}
SUCCESS: Mapping[str, float] = {"ehrr": 0.377, "ehrr_no_auction": 0.310, "ehrr_no_hierarchy": 0.241}
"""Of the ablation."""
RECALL_3 = 0.52
