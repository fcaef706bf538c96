from __future__ import annotations

import pytest

from pegboard.retries import asked_for, may_pass


@pytest.mark.parametrize(("status", "again"), [(200, False), (400, False), (404, False), (429, True), (503, True)])
def test_too_many_requests_and_failures_of_the_service_may_pass(status: int, again: bool) -> None:
    assert may_pass(status) is again


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 7.0),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 7.0),
        ({"retry-after": "3", "retry-after-ms": "250"}, 0.25),
    ],
)
def test_a_service_is_left_alone_for_as_long_as_it_asks(headers: dict[str, str], seconds: float) -> None:
    assert asked_for(headers, otherwise=7.0) == seconds
