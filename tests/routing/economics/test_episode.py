"""Algorithm 1 as a script of what is asked for and what comes of it."""

from __future__ import annotations

import pytest

from pegboard.model import ToolId
from pegboard.routing.economics import Execute, Route, Stop, episode


@pytest.mark.requirement("001.alg1")
def test_the_loop_routes_executes_and_stops_as_the_model_decides() -> None:
    loop = episode("what time is it in Oslo?")
    call = Execute(tool=ToolId("clock", "now"), arguments={"city": "Oslo"})
    assert next(loop).context == ("what time is it in Oslo?",)  # type: ignore[union-attr]
    assert loop.send(Route(subtask="read a clock")) == Route(subtask="read a clock")
    assert loop.send(["clock/now"]).context[1:] == (["clock/now"],)  # type: ignore[union-attr]
    assert loop.send(call) is call
    assert loop.send("isError: no such city").context[2:] == ("isError: no such city",)  # type: ignore[union-attr]

    with pytest.raises(StopIteration) as ended:
        loop.send(Stop(answer="I could not find out."))

    assert ended.value.value.answer == "I could not find out."
    assert ended.value.value.steps == 2


def test_a_loop_whose_model_never_stops_ends_without_an_answer() -> None:
    loop = episode("q", most=2)
    next(loop)
    loop.send(Route(subtask="again"))
    loop.send([])
    loop.send(Route(subtask="and again"))

    with pytest.raises(StopIteration) as ended:
        loop.send([])

    assert (ended.value.value.answer, ended.value.value.steps) == (None, 2)
