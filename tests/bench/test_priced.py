from __future__ import annotations

import math

from pegboard_bench.priced import measure
from pegboard_bench.priced_page import section
from pegboard_bench.synthetic import synthetic_catalog

MACHINE = {"cpu": "any", "cores": 1, "python": "3.11"}


def test_what_the_two_layers_add_is_measured_beside_retrieval_alone() -> None:
    figures = measure(synthetic_catalog(50, seed=1), routes=3)

    kinds = ("retrieval_{}_ms/50", "economics_added_{}_ms/50/cached", "economics_added_{}_ms/50/learning")
    assert list(figures) == [kind.format(share) for kind in kinds for share in ("p50", "p95")]
    assert figures["retrieval_p50_ms/50"] > 0
    assert all(map(math.isfinite, figures.values())), "what is added may be lost in the noise of so few routes"


def test_the_section_says_whether_the_aim_was_met() -> None:
    figures = measure(synthetic_catalog(50, seed=1), routes=3)
    slow = figures | {"economics_added_p50_ms/50/learning": 2.5}
    about = {"command": "make bench-priced", "date": "2026-01-01", "commit": "0", "machine": MACHINE}
    tables = {"tools": 50, "servers": 5, "routes": 3, "synthetic": True}

    assert ": met." in section(about | {"figures": figures, "tables": tables})
    assert ": missed." in section(about | {"figures": slow, "tables": tables})
