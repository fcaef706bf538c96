"""Nobody crowds out others in what is remembered of owners."""

from __future__ import annotations

import random
from collections import Counter
from time import monotonic

from pegboard.owner_cache import IDLE_SECONDS, OwnerCache
from pegboard.testing import FakeClock


def kept(cache: OwnerCache[str, int], keys: str) -> str:
    return "".join(key for key in keys if key in cache)


def test_one_owner_alone_loses_what_was_put_longest_ago() -> None:
    cache = OwnerCache[str, int](2, monotonic)
    for key in "abac":
        cache.put("ann", key, 1)

    assert kept(cache, "abc") == "ac"


def test_who_has_most_loses_its_own() -> None:
    cache = OwnerCache[str, int](4, monotonic)
    cache.put("ann", "a", 1)
    cache.put("ben", "b", 2)
    for key in "cdefgh":
        cache.put("eve", key, 3)

    assert kept(cache, "abcdefgh") == "abgh"
    assert (cache.get("a"), cache.get("c"), len(cache)) == (1, None, 4)


def test_of_owners_with_as_many_the_one_that_rests_longest_loses() -> None:
    cache = OwnerCache[str, int](2, monotonic)
    for owner, key in [("ann", "a"), ("ben", "b"), ("ann", "a"), ("eve", "e")]:
        cache.put(owner, key, 1)

    assert kept(cache, "abe") == "ae"


def test_a_value_may_be_removed_and_change_its_owner() -> None:
    cache = OwnerCache[str, int](2, monotonic)
    cache.put("ann", "a", 1)
    cache.put("ben", "a", 2)
    cache.put("ann", "c", 3)
    cache.remove("c")
    cache.remove("never there")
    assert (cache.get("a"), len(cache)) == (2, 1)

    cache.put("ben", "d", 4)
    cache.put("ann", "e", 5)
    assert kept(cache, "ade") == "de"


def test_whatever_comes_it_is_always_the_largest_that_loses() -> None:
    chance, cache = random.Random(3), OwnerCache[str, str](20, monotonic)
    mine: dict[str, str] = {}
    for _ in range(3_000):
        owner, key = chance.choice("abcdefg"), str(chance.randrange(60))
        if chance.random() < 0.2:
            cache.remove(key)
            mine.pop(key, None)
            continue
        mine[key] = owner
        cache.put(owner, key, owner)
        gone = [each for each in mine if each not in cache]
        counts = Counter(mine.values())
        assert len(gone) == max(0, len(mine) - 20)
        assert all(counts[mine.pop(each)] == max(counts.values()) for each in gone)
        assert all(cache.get(each) == of for each, of in mine.items())


def test_owners_that_are_gone_make_room_first(clock: FakeClock) -> None:
    """Every token that a client renews is an owner of its own."""
    cache = OwnerCache[str, int](4, clock.monotonic)
    for owner in "abcd":
        cache.put(owner, owner, 1)
    clock.advance(IDLE_SECONDS + 1)
    for key in "xyxyz":
        cache.put("ann", key, 2)

    assert kept(cache, "abcdxyz") == "dxyz"
    assert len(cache) == 4
