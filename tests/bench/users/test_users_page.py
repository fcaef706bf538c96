from __future__ import annotations

from pegboard_bench.users.calls import BLOCK, Seen, in_blocks
from pegboard_bench.users.page import section

FIGURES = {
    "users": 200,
    "calls/one_process": 4000,
    "crossed/one_process": 0,
    "failed/one_process": 1,
    "calls/two_replicas_redis": 4000,
    "crossed/two_replicas_redis": 3,
    "failed/two_replicas_redis": 0,
    "p50_ms/own": 5.3,
    "p50_ms/plain": 5.0,
    "p99_ms/own": 9.0,
    "p99_ms/plain": 8.0,
    "added_p50_ms": 0.27,
    "added_p50_ms/lowest_block": 0.2,
    "added_p50_ms/highest_block": 0.4,
    "cpu_ms/own": 3.0,
    "cpu_ms/plain": 2.6,
    "kb_per_user": 190.4,
}
RESULTS = {
    "command": "make bench-users",
    "commit": "a" * 40,
    "date": "2026-11-24T16:00:00+00:00",
    "machine": {"cpu": "A", "cores": 2, "python": "3.11"},
    "figures": FIGURES,
}


def test_the_section_says_how_many_calls_were_crossed_and_what_a_user_costs() -> None:
    page = section(RESULTS)
    assert "| one | 4,000 | 0 | 1 |\n| two on one Redis, in turns | 4,000 | 3 | 0 |\n" in page
    assert "PostgreSQL" not in page
    assert "0.27 (0.20 to 0.40)" in page
    assert "takes 190 KB" in page


def test_blocks_have_every_user_once() -> None:
    blocks = list(in_blocks(range(BLOCK * 2 + 1)))
    assert [len(each) for each in blocks] == [BLOCK, BLOCK, 1]
    assert [one for each in blocks for one in each] == list(range(BLOCK * 2 + 1))


def test_an_error_is_no_crossed_call() -> None:
    seen = Seen({"ann", "bob", "anybody"})
    for whose in ("ann", "bob", "anybody", "Server 'bench' is starting"):
        seen.add(whose, "ann")
    assert (seen.calls, seen.crossed, seen.failed) == (4, 2, 1)
