"""Decisions as a month of a platform has them: three doors, forty keys, conversations of a few turns, some failures."""

from __future__ import annotations

import random
from collections.abc import Iterator

from pegboard.activity_entries import DAY_SECONDS, ActivityEntry, Door, ScoredTool, scores_of
from pegboard.spend_limits import NanoUsd

DAYS = 30
KEYS = 40
CLIENTS = ("claude-code 2.1", "codex 0.9", "cursor 3.2", "gemini-cli 1.4", "an-agent 1.0")
MODELS = ("gpt-5.4", "gpt-5.6", "claude-sonnet-5", "gemini-2.5-flash", "an-own-model")
SERVERS = ("github", "jira", "slack", "postgres", "filesystem", "calendar", "mail", "billing")
ACTS = ("list", "get", "create", "update", "delete", "search", "describe", "export")
THINGS = ("issue", "page", "message", "table", "file", "event", "customer", "report")
TURNS = 6
"""Mean decisions of a conversation."""
CANDIDATES = 20


def decisions(many: int, now: float, seed: int = 0) -> Iterator[ActivityEntry]:
    """``many`` decisions of the last `DAYS` days, the earliest first; the same for the same seed."""
    drawn = random.Random(seed)  # noqa: S311
    tools = [f"{server}/{act}_{thing}" for server in SERVERS for act in ACTS for thing in THINGS]
    first = (now // DAY_SECONDS - DAYS + 1) * DAY_SECONDS
    open_: list[str] = [f"{drawn.getrandbits(48):012x}" for _ in range(40)]
    for number in range(many):
        place = drawn.randrange(len(open_))
        if drawn.random() < 1 / TURNS:
            open_[place] = f"{drawn.getrandbits(48):012x}"
        at = first + (now - first) * number / many
        yield decision(drawn, f"{drawn.getrandbits(128):032x}", at, open_[place], tools)


def decision(drawn: random.Random, id_: str, at: float, conversation: str, tools: list[str]) -> ActivityEntry:
    door: Door = drawn.choices(("llm", "mcp", "api"), (6, 3, 1))[0]
    known = int(conversation, 16)
    candidates = drawn.sample(tools, CANDIDATES)
    names = [each.partition("/")[2] if door == "llm" else each for each in candidates]
    before = drawn.randrange(4_000, 40_000)
    after = before // drawn.randrange(4, 12)
    called = tuple(drawn.choices(names[:4], k=drawn.choices((0, 1, 2), (3, 5, 2))[0]))
    return ActivityEntry(
        id=id_,
        at=at,
        door=door,
        kind="request" if door == "llm" else "route" if door == "api" else "search",
        key=f"team-{known % KEYS:02}",
        client=CLIENTS[known % len(CLIENTS)] if door == "mcp" else "",
        conversation=conversation,
        upstream="a-provider" if door == "llm" else "",
        model=MODELS[known % len(MODELS)] if door == "llm" else "",
        profile="hybrid",
        encoder="minilm",
        outcome="filtered",
        tools=drawn.randrange(40, 400),
        offered=8,
        scores=scores_of(
            ScoredTool(name, round(1 / (rank + 1.5 + drawn.random()), 4), rank < 8) for rank, name in enumerate(names)
        ),
        called=called,
        failures=int(bool(called) and drawn.random() < 0.03),
        searches=int(drawn.random() < 0.05),
        tokens_before=before,
        tokens_after=after,
        billed=NanoUsd(after * 2_000),
        saved=NanoUsd((before - after) * 2_000),
        latency_ms=round(drawn.random() * 9, 3),
        error="status 429" if drawn.random() < 0.01 else "",
    )
