"""What is projected and not measured: every constant, with its source. Whatever comes from here carries a dagger (†).

The paper publishes its projections and not how they were made. So two of its rows, B1 and Tool Attention, are taken as
given, and lines through them stand for the curves; its other rows then show how far that is from what it did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

B1_TOKENS, TA_TOKENS = 47_312, 2_368
"""Tokens a turn (Tool Attention, table 3)."""
B1_RHO, TA_RHO = 0.24, 0.91
"""ρ at turn 30 (table 3)."""
B1_SUCCESS, TA_SUCCESS = 0.72, 0.94
"""Projected success (table 3): with every tool in reach, so what is lost is lost to a full context."""
B1_P50, TA_P50 = 4.2, 2.0
B1_P95, TA_P95 = 7.9, 4.3
"""Projected seconds a turn (table 3)."""
B1_QUALITY, TA_QUALITY = 3.21, 4.43
B1_GOOD, TA_GOOD = 0.432, 0.876
"""Projected rubric score, mean and share of at least 4 (table 4)."""
USD_INPUT, USD_OUTPUT = 3e-6, 15e-6
"""USD a token: the list price that `pegboard audit` assumes, of a model of the middle class, November 2026."""
OUTPUT = 150
"""Tokens that a model writes a request: a call with its arguments and a sentence. An assumption."""

SEED_TABLE_3: Mapping[str, tuple[float, float, float, float, float, float]] = {
    "full": (47_312, 0.24, 0.72, 4.2, 7.9, 0.21),
    "pruned": (11_865, 0.56, 0.58, 3.8, 7.1, 0.09),
    "simple": (4_082, 0.78, 0.81, 2.2, 4.6, 0.04),
    "cli": (480, 0.94, 0.88, 2.4, 5.4, 0.03),
    "attention": (2_368, 0.91, 0.94, 2.0, 4.3, 0.03),
}
"""Tokens a turn, ρ, and projected: success, seconds at p50 and p95, USD a task."""
SEED_TABLE_4: Mapping[str, tuple[float, float]] = {
    "full": (3.21, 0.432),
    "pruned": (3.35, 0.480),
    "simple": (3.89, 0.687),
    "cli": (4.02, 0.741),
    "attention": (4.43, 0.876),
}
"""Projected rubric score, and share of at least 4."""
SEED_TABLE_5: Mapping[str, tuple[float, float]] = {
    "attention": (2_368, 0.942),
    "no_gate": (2_368, 0.910),
    "no_preconditions": (2_462, 0.906),
    "summaries_only": (4_820, 0.792),
    "minilm": (2_368, 0.942),
    "mpnet": (2_371, 0.946),
    "tfidf": (2_410, 0.861),
    "k5": (1_320, 0.914),
    "k20": (4_190, 0.944),
    "theta_0.15": (3_270, 0.939),
    "theta_0.40": (1_480, 0.882),
}
"""Tokens of phase 2, and projected success. "Summaries only" is there twice, as 0 tokens of phase 2 at 0.839."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    success: float
    p50: float
    p95: float
    usd: float
    quality: float
    good: float


def projected(*, rho: float, recall: float, sent: float, requests: float, steps: float) -> Projected:
    """† From what was measured: ρ at turn 30, recall, tokens sent a step, requests a step and steps a task."""
    each = sent / requests
    return Projected(
        success=_between(rho, B1_RHO, TA_RHO, B1_SUCCESS, TA_SUCCESS) * recall,
        p50=requests * _line(each, B1_TOKENS, TA_TOKENS, B1_P50, TA_P50),
        p95=requests * _line(each, B1_TOKENS, TA_TOKENS, B1_P95, TA_P95),
        usd=steps * (sent * USD_INPUT + requests * OUTPUT * USD_OUTPUT),
        quality=_between(rho, B1_RHO, TA_RHO, B1_QUALITY, TA_QUALITY),
        good=_between(rho, B1_RHO, TA_RHO, B1_GOOD, TA_GOOD),
    )


def _line(at: float, x0: float, x1: float, y0: float, y1: float) -> float:
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def _between(at: float, x0: float, x1: float, y0: float, y1: float) -> float:
    """On the line, and not beyond its ends."""
    return _line(min(max(at, x0), x1), x0, x1, y0, y1)
