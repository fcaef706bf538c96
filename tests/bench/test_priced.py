from __future__ import annotations

import math

from pegboard.bench.priced import measure
from pegboard.bench.synthetic import synthetic_catalog


def test_what_the_two_layers_add_is_measured_beside_retrieval_alone() -> None:
    figures = measure(synthetic_catalog(50, seed=1), routes=3)

    assert list(figures) == [
        "retrieval_p50_ms/50",
        "economics_added_p50_ms/50/cached",
        "economics_added_p50_ms/50/learning",
    ]
    assert figures["retrieval_p50_ms/50"] > 0
    assert all(map(math.isfinite, figures.values())), "what is added may be lost in the noise of so few routes"
