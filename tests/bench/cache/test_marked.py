"""Against the examples of Anthropic's documentation.

platform.claude.com/docs/en/build-with-claude/prompt-caching, read 2026-11-22.
"""

from __future__ import annotations

import pytest

from pegboard.prompt_cache import known_prices, prices_of
from pegboard_bench.cache.marked import MarkedCache
from pegboard_bench.cache.prompts import Block, Mark, Prompt, Usage, prompt

SONNET = prices_of(known_prices(), "anthropic", "claude-sonnet-5")
HOUR = prices_of(known_prices(), "anthropic", "claude-sonnet-5", lasting=True)
GPT = prices_of(known_prices(), "openai", "gpt-5.6")
LONG = 2_000


def blocks(count: int, tokens: int = LONG) -> list[Block]:
    return [(number, tokens) for number in range(1, count + 1)]


def marked(said: list[Block], *places: int, lasting: bool = False) -> Prompt:
    return prompt(said, [Mark(block=place, lasting=lasting) for place in places])


def test_lookback_in_a_growing_conversation() -> None:
    cache = MarkedCache(SONNET)

    first = cache.send(marked(blocks(10), 10), 0)
    second = cache.send(marked(blocks(15), 15), 1)
    third = cache.send(marked(blocks(35), 35), 2)

    assert first == Usage(written=10 * LONG)
    assert second == Usage(read=10 * LONG, written=5 * LONG)
    assert third == Usage(written=35 * LONG), "the entry at block 15 is one position outside the window of 20"


def test_a_second_breakpoint_at_block_15_starts_a_second_lookback_window() -> None:
    cache = MarkedCache(SONNET)
    cache.send(marked(blocks(15), 15), 0)

    assert cache.send(marked(blocks(35), 15, 35), 1) == Usage(read=15 * LONG, written=20 * LONG)


def test_a_breakpoint_on_what_changes_with_every_request_never_reads() -> None:
    cache = MarkedCache(SONNET)
    cache.send(marked([*blocks(5), (101, 500)], 6), 0)

    assert cache.send(marked([*blocks(5), (102, 500)], 6), 1) == Usage(written=5 * LONG + 500)


def test_a_breakpoint_on_the_last_block_that_stays_reads_it_each_time() -> None:
    cache = MarkedCache(SONNET)
    cache.send(marked([*blocks(5), (101, 500)], 5), 0)

    assert cache.send(marked([*blocks(5), (102, 500)], 5), 1) == Usage(read=5 * LONG, plain=500)


@pytest.mark.parametrize(("changed", "read"), [(0, 0), (1, LONG), (2, 2 * LONG)])
def test_a_change_invalidates_its_level_and_all_behind_it(changed: int, read: int) -> None:
    """Tools, system, messages."""
    cache = MarkedCache(SONNET)
    cache.send(marked(blocks(3), 1, 2, 3), 0)
    other = blocks(3)
    other[changed] = (99, LONG)

    assert cache.send(marked(other, 1, 2, 3), 1) == Usage(read=read, written=3 * LONG - read)


def test_what_is_shorter_than_the_minimum_is_processed_without_caching() -> None:
    cache = MarkedCache(SONNET)
    short = marked([(1, 1_023)], 1)

    assert cache.send(short, 0) == cache.send(short, 1) == Usage(plain=1_023)
    assert cache.send(marked([(1, 1_024)], 1), 2) == Usage(written=1_024)


def test_five_minutes_count_from_the_last_use() -> None:
    cache = MarkedCache(SONNET)
    whole = marked(blocks(3), 3)
    cache.send(whole, 0)

    assert cache.send(whole, 299).read == 3 * LONG
    assert cache.send(whole, 598).read == 3 * LONG
    assert cache.send(whole, 898) == Usage(written=3 * LONG)


def test_an_hours_entry_lasts_an_hour_and_its_writing_costs_twice_the_input() -> None:
    cache = MarkedCache(SONNET, HOUR)
    whole = marked(blocks(3), 3, lasting=True)

    written = cache.send(whole, 0)

    assert written == Usage(lasting=3 * LONG)
    assert written.billed(SONNET, HOUR) == 2 * 3 * LONG
    assert cache.send(whole, 3_599).billed(SONNET, HOUR) == pytest.approx(0.1 * 3 * LONG)


def test_mixed_lifetimes_are_billed_by_the_three_positions() -> None:
    """A: the highest hit; B: the highest breakpoint of an hour after it; C: the last breakpoint."""
    cache = MarkedCache(SONNET, HOUR)
    cache.send(marked(blocks(1), 1, lasting=True), 0)
    mixed = prompt([*blocks(3), (9, 700)], [Mark(block=1, lasting=True), Mark(block=2, lasting=True), Mark(block=3)])

    assert cache.send(mixed, 1) == Usage(read=LONG, lasting=LONG, written=LONG, plain=700)


def test_a_fifth_breakpoint_and_a_longer_lifetime_after_a_shorter_one_are_refused() -> None:
    cache = MarkedCache(SONNET)

    with pytest.raises(ValueError, match="at most 4"):
        cache.send(marked(blocks(5), 1, 2, 3, 4, 5), 0)
    with pytest.raises(ValueError, match="longer lifetime"):
        cache.send(prompt(blocks(2), [Mark(block=1), Mark(block=2, lasting=True)]), 0)


def test_caching_pays_off_after_one_read_for_five_minutes_and_after_two_for_an_hour() -> None:
    """platform.claude.com/docs/en/about-claude/pricing, read 2026-11-22."""
    tokens = 10_000
    read = Usage(read=tokens).billed(SONNET)

    assert Usage(written=tokens).billed(SONNET) + read < 2 * tokens
    assert Usage(lasting=tokens).billed(SONNET, HOUR) + read > 2 * tokens
    assert Usage(lasting=tokens).billed(SONNET, HOUR) + 2 * read < 3 * tokens


def test_since_gpt_5_6_entries_end_at_messages_writing_is_charged_and_half_an_hour_counts_from_the_last_use() -> None:
    """developers.openai.com/api/docs/guides/prompt-caching, read 2026-11-22."""
    cache = MarkedCache(GPT)
    first = cache.send(marked(blocks(2), 2), 0)
    second = cache.send(marked(blocks(4), 4), 1_799)

    assert first.billed(GPT) == 1.25 * 2 * LONG
    assert second.billed(GPT) == pytest.approx(0.1 * 2 * LONG + 1.25 * 2 * LONG)
    assert cache.send(marked(blocks(4), 4), 1_799 + 1_800).read == 0
