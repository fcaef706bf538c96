"""Results of a board's calls in fewer tokens, and what is read of kept ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import Board, Call, Result, ToolId
from pegboard.errors import ConfigError
from pegboard.events import Event, ResultRead, ResultShaped
from pegboard.library.board_results import READ_RESULT
from pegboard.results.json_tables import restored
from pegboard.testing import FakeEncoder

ROWS = [{"id": at, "name": f"part {at}", "state": "open", "weight": at / 4} for at in range(400)]
CUT = {"policy": "handle", "threshold": 50, "budget": 400}
ASK = "list the parts"


class Seen:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


def list_parts() -> list[dict[str, Any]]:
    """List the parts"""
    return ROWS


def read_file() -> list[dict[str, Any]]:
    """Read the parts from a file"""
    return ROWS


def fail() -> None:
    """List the parts that failed"""
    raise RuntimeError("\n".join(["the same line"] * 500))


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"encoder": FakeEncoder(), "cache_dir": tmp_path, "state_dir": tmp_path, "k": 5}


def handle_in(text: str) -> str:
    return text.partition('with handle "')[2].partition('"')[0]


@pytest.mark.requirement("results.library")
def test_by_default_a_result_is_what_the_function_returned(options: dict[str, Any]) -> None:
    with Board([list_parts], **options) as board:
        decision = board.route_now(ASK)
        assert json.loads(board.execute_now(Call(name="list_parts"), decision).text) == ROWS
        assert READ_RESULT not in decision.active


@pytest.mark.requirement("results.library")
def test_a_boards_results_are_tables_whose_values_programs_still_have(options: dict[str, Any]) -> None:
    seen = Seen()
    with Board([list_parts, read_file, fail], results="shaped", events=seen, gate="reachable", **options) as board:
        decision = board.route_now(ASK)
        result = board.execute_now(Call(name="list_parts"), decision)
        assert restored(result.text.partition("\n")[2]) == ROWS
        assert result.structured == ROWS
        assert json.loads(board.execute_now(Call(name="list_parts"), decision, results="whole").text) == ROWS
        assert json.loads(board.execute_now(Call(name="read_file"), decision).text) == ROWS
        assert board.execute_now(Call(name="fail"), decision).text.count("the same line") == 500
        assert READ_RESULT not in decision.active
        with pytest.raises(ConfigError, match="tiny"):
            board.execute_now(Call(name="list_parts"), decision, results="tiny")  # type: ignore[arg-type]

    (told,) = [each for each in seen.events if isinstance(each, ResultShaped)]
    assert told.tokens_after < told.tokens_before / 2


@pytest.mark.requirement("results.library")
def test_what_is_cut_is_read_on_in_its_conversation_alone(options: dict[str, Any]) -> None:
    seen = Seen()
    with Board([list_parts], results=CUT, events=seen, **options) as board:
        decision = board.route_now(ASK, session="ann")
        assert [tool["function"]["name"] for tool in decision.tools_for("openai")][-1] == "read_result"
        said = board.execute_now(Call(name="list_parts"), decision).text
        assert "part 399" not in said
        asked = Call(name="read_result", arguments={"handle": handle_in(said), "path": "[?id==`399`].name"})

        assert "part 399" in board.execute_now(asked, decision).text
        for other in (board.route_now(ASK, session="ben"), board.route_now(ASK)):
            assert json.loads(board.execute_now(asked, other).text)["error"] == "result_not_kept"
        wrong = Call(name="read_result", arguments={"handle": handle_in(said), "path": "[", "page": 1})
        assert board.execute_now(wrong, decision).is_error

    assert [type(each) for each in seen.events if isinstance(each, ResultShaped | ResultRead)] == [
        ResultShaped,
        ResultRead,
    ]


@pytest.mark.requirement("results.library")
def test_a_conversation_reads_on_after_a_restart_and_boards_without_a_session_keep_to_themselves(
    options: dict[str, Any],
) -> None:
    with Board([list_parts], results=CUT, **options) as board:
        named = board.execute_now(Call(name="list_parts"), board.route_now(ASK, session="ann"))
        unnamed = board.execute_now(Call(name="list_parts"), board.route_now(ASK))
        assert named.text == unnamed.text
        asked = {"handle": handle_in(named.text), "grep": "part 399"}
        assert "part 399" in board.call_now(READ_RESULT, asked).text
        assert board.with_tools([list_parts]).call_now(READ_RESULT, asked).is_error

    with Board([list_parts], results=CUT, **options) as board:
        asked = Call(name="read_result", arguments=asked)
        assert "part 399" in board.execute_now(asked, board.route_now(ASK, session="ann")).text
        assert board.execute_now(asked, board.route_now(ASK)).is_error


@pytest.mark.parametrize("handle", ["nope", "\0", "\ud800", "r" * 10_000, "r" + "٣" * 24])
def test_what_cannot_be_a_handle_is_not_kept(options: dict[str, Any], handle: str) -> None:
    with Board([list_parts], results=CUT, **options) as board:
        decision = board.route_now(ASK, session="ann")
        said = board.execute_now(Call(name="read_result", arguments={"handle": handle}), decision)

    assert json.loads(said.text)["error"] == "result_not_kept"


@pytest.mark.requirement("results.library")
async def test_results_of_calls_that_the_caller_made_itself_are_shaped_too(options: dict[str, Any]) -> None:
    own = Result(tool=ToolId("mine", "parts"), content=({"type": "text", "text": json.dumps(ROWS)},))
    async with Board([list_parts], results={**CUT, "tools": {"mine/*": "shaped"}}, **options) as board:
        shaped = await board.results.shaped(own, session="ann")
        cut = await board.results.shaped(own, session="ann", form="handle")
        whole = await board.results.shaped(own, form="whole")
        read = await board.results.read({"handle": handle_in(cut.text), "lines": "403"}, session="ann")

    assert restored(shaped.text.partition("\n")[2]) == ROWS
    assert whole is own
    assert read.text.startswith("399\tpart 399")
