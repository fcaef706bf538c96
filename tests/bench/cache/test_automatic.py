"""Against the examples of OpenAI's and Google's documentation."""

from __future__ import annotations

import pytest

from pegboard.prompt_cache import known_prices, prices_of
from pegboard_bench.cache.automatic import AutomaticCache
from pegboard_bench.cache.prompts import Usage, prompt

GPT = prices_of(known_prices(), "openai", "gpt-5.4")
GPT_4O = prices_of(known_prices(), "openai", "gpt-4o")
GEMINI = prices_of(known_prices(), "gemini", "gemini-2.5-flash")


def test_of_2006_tokens_1920_are_read() -> None:
    """developers.openai.com/api/docs/guides/prompt-caching, the usage it shows, read 2026-11-22."""
    cache = AutomaticCache(GPT)
    whole = prompt([(1, 2_006)])

    assert cache.send(whole, 0) == Usage(plain=2_006)
    assert cache.send(whole, 1) == Usage(read=1_920, plain=86)


@pytest.mark.parametrize(
    ("tokens", "read"), [(1_023, 0), (1_024, 1_024), (1_151, 1_024), (1_152, 1_152), (1_408, 1_408)]
)
def test_hits_are_1024_tokens_and_multiples_of_128_more(tokens: int, read: int) -> None:
    cache = AutomaticCache(GPT)
    cache.send(prompt([(1, tokens)]), 0)

    assert cache.send(prompt([(1, tokens), (2, 5)]), 1).read == read


def test_writing_costs_nothing_more_and_reading_what_the_model_takes() -> None:
    cache = AutomaticCache(GPT_4O)
    whole = prompt([(1, 2_048)])

    assert cache.send(whole, 0).billed(GPT_4O) == 2_048
    assert cache.send(whole, 1).billed(GPT_4O) == 1_024


def test_only_the_beginning_that_is_the_same_is_read() -> None:
    cache = AutomaticCache(GPT)
    cache.send(prompt([(1, 1_280), (2, 1_280), (3, 1_280)]), 0)

    assert cache.send(prompt([(1, 1_280), (9, 1_280), (3, 1_280)]), 1).read == 1_280
    assert cache.send(prompt([(9, 1_280), (2, 1_280), (3, 1_280)]), 2).read == 0


def test_an_entry_that_is_not_used_for_five_minutes_is_gone() -> None:
    cache = AutomaticCache(GPT)
    whole = prompt([(1, 1_280)])
    cache.send(whole, 0)

    assert cache.send(whole, 299).read == 1_280
    assert cache.send(whole, 598).read == 1_280
    assert cache.send(whole, 898).read == 0


def test_above_fifteen_requests_a_minute_a_machine_is_asked_that_has_not_seen_the_prefix() -> None:
    cache = AutomaticCache(GPT, per_minute=15)
    whole = prompt([(1, 1_280)])

    read = [cache.send(whole, second).read for second in range(17)]

    assert read == [0, *[1_280] * 14, 0, 1_280]
    assert cache.send(whole, 100).read == 1_280


def test_gemini_caches_from_its_models_minimum_on_and_takes_a_tenth() -> None:
    """ai.google.dev/gemini-api/docs/caching, read 2026-11-22: 2,048 tokens for Gemini 2.5 Flash."""
    cache = AutomaticCache(GEMINI)
    short, enough = prompt([(1, 2_047)]), prompt([(2, 2_048)])
    for each in (short, enough):
        cache.send(each, 0)

    assert cache.send(short, 1).billed(GEMINI) == 2_047
    assert cache.send(enough, 1).billed(GEMINI) == pytest.approx(204.8)
