from __future__ import annotations

from itertools import pairwise

import pytest

from pegboard.catalog import BpeCounter, canonical_text
from pegboard.model import AgentState, Tool
from pegboard.testing import fake_tool
from pegboard_bench.tax.request import Sent
from pegboard_bench.tax.rows import READ, TALK, WRITE, Tally, count, row, wire_text
from pegboard_bench.tax.tasks import Step, Task

FIND, SEND = fake_tool("find", "Finds what was lost"), fake_tool("send", "Sends a parcel")


def tokens(text: str) -> int:
    return BpeCounter().count([text])[0]


def wire(tool: Tool) -> int:
    return tokens(wire_text(tool)) + 1


def steps(*sends: Sent) -> list[int]:
    return [each.turn for each in count(sends, Tally(), Tally("o200k_base"))]


def test_a_step_counts_definitions_texts_and_what_was_asked_in_it() -> None:
    sent = Sent(tools=(FIND,), late=(SEND,), texts=("a pool",), asked=(("a call", "an answer"),))

    assert steps(sent) == [
        tokens(canonical_text(FIND)) + tokens(canonical_text(SEND)) + tokens("a pool") + tokens("a call")
        + tokens("an answer")
    ]  # fmt: skip


def test_what_was_asked_stays_in_the_conversation() -> None:
    asking = Sent(texts=("a pool",), asked=(("a call", "an answer"),))
    first, second = count([asking, Sent(texts=("a pool",))], Tally(), Tally())

    assert second.turn == tokens("a pool")
    assert second.resident == second.turn + tokens("a call") + tokens("an answer") == first.resident


def test_every_request_of_a_step_carries_the_definitions_and_what_was_asked_before_it() -> None:
    asked = (("one",), ("two",))
    (found,) = count([Sent(tools=(FIND,), asked=asked)], Tally(), Tally())

    assert found.requests == 3
    assert found.sent == 3 * wire(FIND) + 2 * tokens("one") + tokens("two")


def test_a_kept_prefix_is_read_and_a_changed_one_written_with_the_talk_behind_it() -> None:
    first, same, changed = count([Sent(tools=(FIND,)), Sent(tools=(FIND,)), Sent(tools=(SEND,))], Tally(), Tally())

    assert first.billed == pytest.approx(WRITE * wire(FIND))
    assert same.billed == pytest.approx(READ * wire(FIND))
    assert changed.billed == pytest.approx(WRITE * wire(SEND) + (WRITE - READ) * 2 * TALK)


def test_definitions_behind_the_conversation_leave_the_prefix_as_it_is() -> None:
    sends = [Sent(texts=("a pool",), late=(tool,)) for tool in (FIND, SEND)]
    _, second = count(sends, Tally(), Tally())

    assert second.billed == pytest.approx(READ * tokens("a pool") + wire(SEND))


def test_recall_is_the_share_of_steps_whose_tool_could_be_called() -> None:
    step = Step(said="find it", ask="find it", serves=frozenset({FIND.id}), state=AgentState())
    task = Task(kind="multi", steps=(step, step))
    found = row(task, [Sent(reached=frozenset({FIND.id, SEND.id})), Sent()], Tally(), Tally())

    assert (found["recall"], found["complete"]) == (0.5, 0.0)
    assert found["f1"] == pytest.approx((2 / 3 + 0) / 2)


def test_equal_tools_are_counted_once_and_alike() -> None:
    tally = Tally()
    counts = [tally.canonical((FIND, SEND)) for _ in range(3)]

    assert all(a == b for a, b in pairwise(counts))
    assert counts[0] == tokens(canonical_text(FIND)) + tokens(canonical_text(SEND))
