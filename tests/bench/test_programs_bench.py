"""What the benchmark of programs counts, and the board that it makes."""

from __future__ import annotations

import pytest

from pegboard.catalog import Catalog
from pegboard_bench.programs.conversation import Conversation
from pegboard_bench.programs.listed_server import recorded
from pegboard_bench.programs.world import REAL_SERVERS, RECORDED

COUNTER = Catalog.build([]).counter


def test_every_request_sends_what_came_before_and_only_what_is_new_is_written_to_the_cache() -> None:
    conversation = Conversation(COUNTER, "word", "word")
    conversation.write("word")
    first = (conversation.tokens, conversation.bill)
    conversation.read("word")
    conversation.write("word")

    assert first == (3, 2 * 1.25 + 5)
    assert (conversation.tokens, conversation.requests) == (3 + 5, 2)
    assert conversation.bill == pytest.approx(first[1] + 2 * 0.1 + 2 * 1.25 + 5)


@pytest.mark.parametrize("count", [50, 750, 2_000])
def test_a_board_has_as_many_recorded_tools_as_it_should_each_once(count: int) -> None:
    names = [tool["name"] for tool in recorded(RECORDED, frozenset(REAL_SERVERS), count)]

    assert len(names) == len(set(names)) == count
