"""What use teaches at each door: the LLM gateway by answers' calls, the MCP gateway by calls after searches, the
library by executed calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from model_doors import model_door
from model_upstream import model_upstream
from pegboard import Board, Call
from pegboard.clock import SYSTEM_CLOCK
from pegboard.habits import TRIAL
from pegboard.routing.habit_book import HabitBook
from pegboard.routing.habit_learner import HabitLearner
from pegboard.stores import MemoryEmbeddings, MemoryHabits
from pegboard.testing import FakeEncoder

NAMES = ("book_flight", "renew_loan", "tune_piano", "water_plants", "call_taxi", "read_news", "play_song", "buy_bread")
TOOLS = [{"type": "function", "function": {"name": name, "description": name.replace("_", " ")}} for name in NAMES]


def asks(text: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "tools": TOOLS}


def calls(*names: str) -> bytes:
    """An answer of Chat Completions that calls these tools."""
    called = [{"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names]
    message = {"role": "assistant", "content": None if names else "done", "tool_calls": called}
    return json.dumps({"id": "1", "choices": [{"index": 0, "message": message}]}).encode()


def taught(store: MemoryHabits) -> set[str]:
    """The names of the tools about which something is stored."""
    return {row.name for row in store._known if row.server != TRIAL}


async def served(store: MemoryHabits, *, learns: bool = True, mood: str = "ok", keys: Mapping[str, Any] = {}) -> None:
    """Three requests with one meaning, each answered by a call of `buy_bread`."""
    learner = HabitLearner(HabitBook(SYSTEM_CLOCK, store)) if learns else None
    parts: dict[str, Any] = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings(), "learner": learner}
    async with model_upstream() as upstream:
        upstream.body, upstream.mood = calls("buy_bread"), mood
        async with (
            model_door({"one": {"url": upstream.url}}, parts=parts, policy={"profile": "hybrid"}) as (address, _, _),
            httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False) as http,
        ):
            for number in range(3):
                await http.post("/one/v1/chat/completions", json=asks(f"fresh rolls, {number} of them"))


async def test_calls_of_answers_are_learnt_and_no_text_is_stored() -> None:
    store = MemoryHabits()
    await served(store)

    assert taught(store) == {"buy_bread"}
    assert "rolls" not in repr(store._known)


async def test_nothing_is_stored_if_learning_is_off() -> None:
    store = MemoryHabits()
    await served(store, learns=False)

    assert taught(store) == set()


async def test_answers_with_an_error_teach_nothing() -> None:
    store = MemoryHabits()
    await served(store, mood="error")

    assert taught(store) == set()


@pytest.mark.parametrize("learn", [True, False])
def test_the_library_learns_from_executed_calls_if_it_is_told_to(learn: bool) -> None:
    def buy_bread() -> str:
        "Buy bread at the bakery"
        return "two loaves"

    def tune_piano() -> str:
        "Tune the piano"
        return "in tune"

    with Board([buy_bread, tune_piano], encoder=FakeEncoder(), usage={"learn": learn, "control": 0.0}) as board:
        decision = board.route_now("fresh rolls")
        assert not board.execute_now(Call(name="buy_bread"), decision).is_error
        learner = board.routing.learner
        known = {} if learner is None else next(iter(learner.book._known.values())).vectors()

    assert {tool.name for tool in known} == ({"buy_bread"} if learn else set())
