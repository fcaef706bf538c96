"""What plays are billed, under two providers' rules of prompt caching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard_bench.cache.prompts import prompt
from pegboard_bench.cache.providers import Model
from pegboard_bench.whole_tasks.play import Played

MODELS = ("gpt-5.4", "claude-sonnet-5")
TTL = 300
BETWEEN_TASKS, BETWEEN_REQUESTS = 60.0, 3.0
"""Seconds: one user, who asks for one thing after the other."""


def billed(plays: Sequence[Played], name: str) -> list[float]:
    """Of each play of one way in the order of the tasks, in tokens of plain input. The cache goes on from play to play;
    requests to a selecting model are billed in full."""
    model = Model.of(name, TTL)
    cache, now, bills = model.cache(), 0.0, []
    for play in plays:
        kept = play["kept"]
        bill = float(sum(kept["aside"]))
        for tools, places in kept["sent"]:
            blocks = [(int(kept["blocks"][place][0]), int(kept["blocks"][place][1])) for place in places]
            used = cache.send(prompt(blocks, model.marks(tools, len(blocks))), now)
            bill += used.billed(model.prices)
            now += BETWEEN_REQUESTS
        bills.append(bill)
        now += BETWEEN_TASKS
    return bills


def bills(plays: Mapping[int, Sequence[Played]], name: str) -> list[float]:
    """Of the plays of all seeds, each seed a user of its own."""
    return [bill for seed in sorted(plays) for bill in billed(plays[seed], name)]
