from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pegboard_bench.mcp import measure
from pegboard_bench.mcp.measure import Work, ratio, rounds, spread


class Asked:
    """A client that only says who was asked."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log


async def note(client: Any) -> None:
    client.log.append(client.name)


async def test_everybody_has_a_turn_in_every_round_and_the_order_rotates() -> None:
    log: list[str] = []
    clients: Any = {name: Asked(name, log) for name in "abc"}
    times = await rounds(clients, Work(name="w", once=note, batch=2), 3)

    assert "".join(log) == "aabbcc" + "bbccaa" + "ccaabb" + "aabbcc"
    assert {name: len(values) for name, values in times.items()} == {"a": 3, "b": 3, "c": 3}, "the first warms up"


async def test_work_at_once_is_as_much_as_the_batch_says() -> None:
    log: list[str] = []
    clients: Any = {"a": Asked("a", log)}
    await rounds(clients, Work(name="w", once=note, batch=48, at_once=16), 1)

    assert len(log) == 2 * 48


def test_a_ratio_is_taken_within_a_round_so_that_a_slow_moment_does_not_count() -> None:
    times = {"ours": [2.0, 20.0, 2.2], "theirs": [1.0, 10.0, 1.0]}

    assert ratio(times, "ours", "theirs").median == pytest.approx(2.0)


def test_a_spread_has_the_quartiles() -> None:
    assert spread([1, 2, 3, 4, 5]).row() == {"median": 3, "q25": 2, "q75": 4}


async def test_an_answer_that_is_not_the_echo_is_no_measurement() -> None:
    async def send_request(*_arguments: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "something else"}]}

    client: Any = SimpleNamespace(session=SimpleNamespace(send_request=send_request))
    with pytest.raises(RuntimeError, match="Not the echo"):
        await measure.call(client)
