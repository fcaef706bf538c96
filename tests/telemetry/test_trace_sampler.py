"""How many traces are recorded, whatever comes; and whose decision counts."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from pegboard.errors import ConfigError
from pegboard.settings.otel_settings import OtelSettings
from pegboard.telemetry.otel.export_options import MOST_TRACES, export_options
from pegboard.telemetry.trace_sampler import SecondLimit, TraceSampler
from pegboard.telemetry.trace_spans import SpanContext, Tracer, TraceSpan


class Kept(list[TraceSpan]):
    def ended(self, span: TraceSpan) -> None:
        self.append(span)


def admitted(most: float, times: list[float]) -> list[float]:
    now = [0.0]
    limit = SecondLimit(most, now=lambda: now[0])
    found = []
    for now[0] in times:
        if limit.admits():
            found.append(now[0])
    return found


@given(
    most=st.floats(min_value=0.1, max_value=200),
    gaps=st.lists(st.one_of(st.just(0.0), st.floats(min_value=0, max_value=3)), max_size=300),
)
@pytest.mark.requirement("otel.limited")
def test_in_no_span_of_time_do_more_pass_than_one_burst_and_the_rate(most: float, gaps: list[float]) -> None:
    times = list(accumulate(gaps))
    found = admitted(most, times)
    for place, begin in enumerate(found):
        for end in (begin, begin + 0.5, begin + 2.0, math.inf):
            last = min(end, found[-1])
            passed = bisect_right(found, last) - place
            assert passed <= max(1.0, most) + most * (last - begin) + 0.01


@given(most=st.integers(min_value=1, max_value=100), seconds=st.integers(min_value=1, max_value=5))
def test_after_a_burst_of_a_seconds_worth_each_interval_lets_one_through(most: int, seconds: int) -> None:
    flood = [number / (most * 20) for number in range(most * 20 * seconds)]

    found = admitted(most, [0.0] * (2 * most) + flood)

    assert found.count(0.0) == most
    assert most * seconds - 2 <= len(found) - most <= most * seconds


def test_what_comes_no_faster_than_the_limit_all_passes() -> None:
    times = [number / 50 for number in range(5_000)]
    assert admitted(50, times) == times
    assert admitted(0, times) == []


def test_the_share_of_an_id_is_drawn_as_the_sdk_draws_it() -> None:
    drawn, sampler, theirs = random.Random(0), TraceSampler(0.3), TraceIdRatioBased(0.3)
    for _ in range(2_000):
        trace_id = drawn.randbytes(16)
        decision = theirs.should_sample(None, int.from_bytes(trace_id, "big"), "a").decision
        assert sampler.takes(trace_id) == (decision is Decision.RECORD_AND_SAMPLE)
    assert sampler.taken + sampler.left_out == 2_000
    assert 500 < sampler.taken < 700


@pytest.mark.requirement("otel.limited")
def test_a_clients_decision_is_followed_and_takes_nothing_of_the_limit() -> None:
    kept, sampler = Kept(), TraceSampler(limit=SecondLimit(1, now=lambda: 0.0))
    tracer = Tracer(kept, sampler=sampler)
    for number in range(10):
        theirs = SpanContext(bytes([number + 1] * 16), bytes([1] * 8), number % 2 == 0, "vendor=1")
        with tracer.start("tools/call", "server", parent=theirs), tracer.start("tools/call", "client"):
            pass
    for _ in range(3):
        with tracer.start("tools/call", "server"), tracer.start("tools/call", "client"):
            pass

    recorded = [each.recorded for each in kept]
    assert recorded == [True, True, False, False] * 5 + [True, True] + [False] * 4
    assert (sampler.taken, sampler.left_out) == (1, 2)


def test_a_span_that_is_not_recorded_passes_on_the_context_of_its_client() -> None:
    kept = Kept()
    theirs = SpanContext(bytes([7] * 16), bytes([8] * 8), True, "vendor=1")
    tracer = Tracer(kept, sampler=TraceSampler(0.0), follows_parent=False)

    with tracer.start("tools/call", "server", parent=theirs), tracer.start("tools/call", "client") as inner:
        pass

    assert inner.context == theirs._replace(sampled=False)
    assert inner.context.traceparent.endswith("-00")
    assert [each.start for each in kept] == [0, 0]


@pytest.mark.parametrize(
    ("settings", "environment", "ratio", "most"),
    [
        ({}, {}, 1.0, MOST_TRACES),
        ({"most_traces": 5}, {}, 1.0, 5.0),
        ({"sample": 0.5}, {}, 0.5, None),
        ({"sample": 1}, {}, 1.0, None),
        ({"sample": 0.5, "most_traces": 5}, {}, 0.5, 5.0),
        ({}, {"OTEL_TRACES_SAMPLER": "always_on"}, 1.0, None),
        (
            {},
            {"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
            0.25,
            None,
        ),
    ],
)
def test_the_default_limit_holds_unless_a_sampler_is_named(
    settings: dict[str, float], environment: dict[str, str], ratio: float, most: float | None
) -> None:
    options = export_options(OtelSettings(enabled=True, **settings), environment)  # type: ignore[arg-type]
    assert options is not None
    assert (options.ratio, options.most_traces) == (ratio, most)


def test_a_sampler_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match="OTEL_TRACES_SAMPLER"):
        export_options(OtelSettings(enabled=True), {"OTEL_TRACES_SAMPLER": "jaeger_remote"})
