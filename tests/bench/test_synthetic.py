from __future__ import annotations

from pegboard_bench.synthetic import synthetic_catalog, synthetic_queries


def test_a_catalog_has_the_size_asked_for_and_no_tool_twice() -> None:
    catalog = synthetic_catalog(527, seed=1)

    assert len(catalog) == 527
    assert len({tool.name for tool in catalog.tools}) == 527
    assert len(catalog.servers) == 53


def test_equal_seeds_give_equal_catalogs_and_queries() -> None:
    assert synthetic_catalog(40, seed=2).fingerprint == synthetic_catalog(40, seed=2).fingerprint
    assert synthetic_catalog(40, seed=2).fingerprint != synthetic_catalog(40, seed=3).fingerprint
    assert synthetic_queries(5, seed=2) == synthetic_queries(5, seed=2)


def test_no_query_comes_twice() -> None:
    assert len(set(synthetic_queries(300, seed=1))) == 300
