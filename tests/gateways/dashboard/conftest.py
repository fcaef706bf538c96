"""A gateway whose activity is known: seven days of it, over all doors."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from pegboard.activity_entries import DAY_SECONDS, ActivityEntry, ScoredTool, scores_of
from pegboard.spend_limits import NanoUsd
from pegboard.stores import MemoryActivity


def _usage(chosen: random.Random) -> dict[str, Any]:
    """What a provider counted; in one of eight requests, without a price."""
    prompt, unpriced = chosen.randrange(5_000, 50_000), chosen.random() < 0.125
    return {
        "input_tokens": prompt,
        "cached_tokens": prompt // 2,
        "written_tokens": prompt // 10,
        "output_tokens": chosen.randrange(900),
        "cost": NanoUsd(0 if unpriced else prompt * 2_000),
        "unpriced": int(unpriced),
    }


def drawn(seed: int = 1, many: int = 400) -> list[ActivityEntry]:
    """Entries of the last seven days, as random as real ones; the same for the same seed."""
    chosen, today = random.Random(seed), int(time.time() // DAY_SECONDS)
    entries = []
    for number in range(many):
        door = chosen.choice(("llm", "mcp", "api"))
        before = chosen.randrange(500, 9_000)
        entries.append(
            ActivityEntry(
                id=f"{number:032x}",
                at=(today - chosen.randrange(7)) * DAY_SECONDS + number / 1_000,
                door=door,
                kind={"llm": "request", "mcp": "search", "api": "route"}[door],
                key=chosen.choice(("ann", "bob", "")),
                client="claude-code" if door == "mcp" else "",
                conversation=chosen.choice(("0123456789ab", "ba9876543210", "")),
                model="a-model" if door == "llm" else "",
                profile="hybrid",
                outcome="filtered",
                tools=60,
                offered=chosen.randrange(1, 9),
                scores=scores_of([ScoredTool("time/now", 0.91, True), ScoredTool("git/log", 0.12, False)]),
                called=chosen.choice((("time/now",), ("git/log",), ())),
                failures=int(chosen.random() < 0.1),
                searches=int(chosen.random() < 0.2),
                tokens_before=before,
                tokens_after=chosen.randrange(0, before),
                billed=NanoUsd(chosen.randrange(10**6)),
                saved=NanoUsd(chosen.randrange(10**7)),
                latency_ms=chosen.random() * 9,
                **_usage(chosen) if door == "llm" else {},
                error=chosen.choice(("", "", "", "", "", "status 429")),
            )
        )
    return entries


@pytest.fixture
async def week() -> MemoryActivity:
    store = MemoryActivity()
    await store.put(drawn())
    return store
