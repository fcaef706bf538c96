from __future__ import annotations

import pytest

from pegboard_bench.tax.projection import SEED_TABLE_3, SEED_TABLE_4, projected


@pytest.mark.parametrize("method", ["full", "attention"])
def test_the_rows_that_the_lines_go_through_come_out_as_the_paper_has_them(method: str) -> None:
    tokens, rho, success, p50, p95, _ = SEED_TABLE_3[method]
    made = projected(rho=rho, recall=1.0, sent=tokens, requests=1, steps=1)

    assert (made.success, made.p50, made.p95) == pytest.approx((success, p50, p95))
    assert (made.quality, made.good) == pytest.approx(SEED_TABLE_4[method])


def test_a_tool_that_is_not_there_is_a_step_that_fails() -> None:
    assert projected(rho=0.91, recall=0.5, sent=0, requests=1, steps=1).success == pytest.approx(0.47)


def test_a_further_request_takes_its_own_time() -> None:
    one = projected(rho=0.9, recall=1, sent=1000, requests=1, steps=1)
    two = projected(rho=0.9, recall=1, sent=2000, requests=2, steps=1)

    assert two.p50 == pytest.approx(2 * one.p50)
    assert two.usd == pytest.approx(2 * one.usd)
