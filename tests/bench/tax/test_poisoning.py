from __future__ import annotations

from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.poison import _poisoned
from pegboard_bench.tax.testbeds import testbed as bed_of

BED = bed_of("synthetic", None)


async def reached(method: str, kind: str) -> dict[str, float]:
    return dict(await _poisoned(BED, method, kind, Place(), 1))


async def test_everything_that_is_poisoned_reaches_whoever_is_sent_everything() -> None:
    assert await reached("full", "plain") == {"full": 1.0, "text": 0.0, "reached": 1.0}


async def test_a_pool_of_summaries_shows_what_the_gate_keeps_out() -> None:
    found = await reached("attention", "plain")

    assert found["full"] < 0.1
    assert found["text"] == 1.0


async def test_whoever_knows_the_request_gets_past_a_filter_by_relevance() -> None:
    assert (await reached("semantic", "targeted"))["full"] > 0.9
    assert (await reached("semantic", "plain"))["full"] < 0.1
