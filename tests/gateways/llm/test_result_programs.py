"""Programs over the results in a request: when they are offered, and what they can reach."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from model_bodies import CODECS
from pegboard.catalog.tokens import BpeCounter
from pegboard.gateways.llm.tool_results.request_results import RequestResults, ShapedRequest
from pegboard.gateways.llm.tool_results.result_reads import ResultReads
from pegboard.programs.runner import ProgramRunner
from pegboard.settings.program_settings import ProgramSettings
from pegboard.settings.result_settings import ResultSettings
from program_escapes import ESCAPES

ROWS = [{"id": at, "name": f"part {at}", "weight": at / 4} for at in range(4_000)]
COUNTER = BpeCounter("o200k_base")
TOOL = {"name": "parts", "description": "Lists parts", "input_schema": {"type": "object"}}


def request(*results: str, tools: tuple[dict[str, Any], ...] = (TOOL,)) -> bytes:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "List them."}]
    for at, text in enumerate(results):
        call = {"type": "tool_use", "id": f"c{at}", "name": "parts", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": f"c{at}", "content": [{"type": "text", "text": text}]}
        messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return json.dumps({"model": "some", "max_tokens": 9, "tools": tools, "messages": messages}).encode()


def shaped(body: bytes, mode: Any = "auto", **options: Any) -> ShapedRequest:
    programs = None if mode == "off" else ProgramRunner(ProgramSettings(mode=mode, **options))
    results = RequestResults(ResultSettings(budget=400), COUNTER, smallest=0, programs=programs)
    codec = CODECS["anthropic"]
    found = results.shaped(codec, codec.parse(body, "/v1/messages"), "handle")
    assert found is not None
    return found


def offers(found: ShapedRequest) -> tuple[bool, bool]:
    """Whether the request offers `read_result`, and `run_program`."""
    return found.reads is not None, found.reads is not None and found.reads.named("run_program")


async def ran(reads: ResultReads | None, program: str) -> str:
    assert reads is not None
    return await reads.answer("run_program", json.dumps({"program": program}))


@pytest.mark.requirement("programs.results")
def test_a_program_is_offered_with_the_first_cut_whose_rest_would_cost_more_to_read() -> None:
    cut = json.dumps(ROWS)

    assert offers(shaped(request("ok"))) == (False, False)
    assert offers(shaped(request(cut))) == (True, True)
    assert offers(shaped(request(cut), "off")) == (True, False)


@pytest.mark.requirement("programs.results")
@pytest.mark.parametrize(
    ("words", "mode", "offered"),
    [(8_000, "auto", False), (8_000, "on", True), (20_000, "auto", True)],
)
def test_where_the_beginning_is_long_the_tools_are_there_from_the_beginning_and_none_comes_later(
    words: int, mode: str, offered: bool
) -> None:
    """So that the list of tools, which precedes the conversation, keeps its cache."""
    long = (TOOL | {"description": "words and " * words},)

    assert offers(shaped(request("ok", tools=long), mode)) == (True, offered)
    assert offers(shaped(request("ok", json.dumps(ROWS), tools=long), mode)) == (True, offered)


def test_an_agents_own_tool_of_that_name_stays_its_own() -> None:
    found = shaped(request(json.dumps(ROWS), tools=(TOOL, TOOL | {"name": "run_program"})), "on")

    assert offers(found) == (True, False)


@pytest.mark.requirement("programs.results")
async def test_a_program_reads_the_results_of_its_request_and_no_other() -> None:
    here, there = shaped(request(json.dumps(ROWS)), "on"), shaped(request(json.dumps(ROWS[1:])), "on")
    (mine,), (other,) = here.tools, there.tools
    tries = f"""
    print(len(await result('{mine}')), (await result(handle='{mine}'))[-1]['name'])
    for handle in ('{other}', 'r', ''):
        try:
            print(await result(handle))
        except RuntimeError as error:
            print(error)"""

    said = (await ran(here.reads, textwrap.dedent(tries))).split("\n")

    assert said[0] == "4000 part 3999"
    assert said[1:] == [f"result: no result of this conversation is kept under {each!r}" for each in (other, "r", "")]


@pytest.mark.requirement("programs.results")
@pytest.mark.requirement("programs.escapes")
async def test_no_way_leads_out_of_a_program_over_results() -> None:
    found = shaped(request(json.dumps(ROWS)), "on")
    attempts = [
        "\n".join(["try:", textwrap.indent(program.replace("find", "result"), "    "), "    print('escaped')"])
        + f"\nexcept Exception as error:\n    print({said!r} in str(error) or {said!r} in repr(error))"
        for program, said in ESCAPES.values()
    ]

    assert await ran(found.reads, "\n".join(attempts)) == "\n".join(["True"] * len(ESCAPES))


@pytest.mark.requirement("programs.results")
async def test_a_program_has_limits_and_whatever_is_wrong_with_it_is_said() -> None:
    hasty = shaped(request(json.dumps(ROWS)), "on", seconds=0.5)
    found = shaped(request(json.dumps(ROWS)), "on", seconds=60.0, output=100)
    (handle,) = found.tools

    assert "time limit" in await ran(hasty.reads, "while True: pass")
    assert "more were printed" in await ran(found.reads, f"print((await result('{handle}'))[:40])")
    assert "write `await`" in await ran(found.reads, f"result('{handle}')[0]")
    assert found.reads is not None
    assert '"arguments_invalid"' in await found.reads.answer("run_program", '{"code": "1"}')
