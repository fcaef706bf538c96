"""Results of tools in fewer tokens, for agents that send their whole conversation: the same bytes in every request."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mock_providers.scripted import Calls, Model, Says, Seen
from model_bodies import CODECS
from model_doors import Gateway, gateway_beside
from pegboard.catalog.tokens import BpeCounter
from pegboard.events import ProgramFinished, ResultRead, ResultShaped
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_search import MOST_ROUNDS
from pegboard.gateways.llm.tool_results import request_results
from pegboard.gateways.llm.tool_results.request_results import RequestResults, ShapedRequest
from pegboard.gateways.llm.tool_results.result_reads import MOST_READS
from pegboard.results.json_tables import restored
from pegboard.settings.result_settings import ResultSettings
from random_conversations import JOBS, SCHEMA, AgentStep, UserTurn, body, conversations
from strict_upstreams import PROBLEMS
from strict_upstreams.conversations import CONVERSATIONS

ROWS = [{"id": at, "name": f"part {at}", "state": "open", "weight": at / 4} for at in range(400)]
BIG, SMALL = json.dumps(ROWS), json.dumps(ROWS[:20], indent=2)
LOG = "\n".join(["retry"] * 300 + [f"line {at} of the log" for at in range(600)])
PAGE = "<!DOCTYPE html><html><body>" + "<p>A sentence of the page.</p>" * 60 + "</body></html>"
RESULTS = ["ok", SMALL, BIG, LOG, PAGE, json.dumps(BIG), "größe 你好 " * 400]
COUNTER = BpeCounter("o200k_base")
OPTIONS = ResultSettings(threshold=50, budget=400, tools={"files/*": "shaped", "*/weather_*": "whole"})
FORMATS = ("openai_chat", "openai_responses", "anthropic", "gemini")
PATHS = {
    "openai_chat": "/openai/v1/chat/completions",
    "openai_responses": "/openai/v1/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/{model}:{method}",
}
HANDLE = re.compile(r'read_result with handle \\*"(r[0-9a-f]{24})')
TEXT = re.compile(r'"(?:text|content|delta)": ?"((?:[^"\\]|\\.)*)"')

formats = pytest.mark.parametrize("name", FORMATS)


def talk_body(name: str, talk: Any, results: list[str], *, system: bool = True, model: str = "some") -> dict[str, Any]:
    """The request of a conversation, whose results are these, in turn."""
    if name == "gemini":
        made = body("gemini", model, talk, system=system)
        each = iter(results)
        for content in made["contents"]:
            for part in content["parts"]:
                if "functionResponse" in part:
                    said = next(each)
                    rows = said.startswith("[")
                    part["functionResponse"]["response"] = {"result": json.loads(said) if rows else said}
        return made
    chat = body("openai_chat", model, talk, system=system)
    for message, said in zip((each for each in chat["messages"] if each["role"] == "tool"), results, strict=False):
        message["content"] = said
    return chat if name == "openai_chat" else (_messages if name == "anthropic" else _items)(chat)


def _messages(chat: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for each in chat["messages"]:
        if each["role"] == "system":
            continue
        blocks = [{"type": "text", "text": each["content"]}] if each.get("content") else []
        if each["role"] == "tool":
            text = {"type": "text", "text": each["content"]}
            block = {"type": "tool_result", "tool_use_id": each["tool_call_id"], "content": [text]}
            if found[-1]["role"] == "user":
                found[-1]["content"].append(block)
            else:
                found.append({"role": "user", "content": [block]})
            continue
        blocks += [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            }
            for call in each.get("tool_calls", ())
        ]
        if found and found[-1]["role"] == each["role"]:
            found[-1]["content"] += blocks
        else:
            found.append({"role": each["role"], "content": blocks})
    tools = [{"name": job, "description": said, "input_schema": SCHEMA} for job, said in JOBS.items()]
    return {"model": chat["model"], "max_tokens": 100, "messages": found, "tools": tools}


def _items(chat: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    for each in chat["messages"]:
        if each["role"] == "tool":
            output = {"type": "function_call_output", "call_id": each["tool_call_id"], "output": each["content"]}
            found.append(output)
            continue
        if each.get("content"):
            found.append({"role": each["role"], "content": each["content"]})
        found += [
            {"type": "function_call", "call_id": call["id"], **call["function"]} for call in each.get("tool_calls", ())
        ]
    tools = [
        {"type": "function", "name": job, "description": said, "parameters": SCHEMA, "strict": False}
        for job, said in JOBS.items()
    ]
    return {"model": chat["model"], "store": False, "input": found, "tools": tools}


def parsed(name: str, sent: Mapping[str, Any]) -> LlmRequest:
    return CODECS[name].parse(json.dumps(sent).encode(), "/v1beta/models/some:generateContent")


def shaped(name: str, sent: Mapping[str, Any], form: Any = "handle", by: RequestResults | None = None) -> ShapedRequest:
    found = (by or RequestResults(OPTIONS, COUNTER, smallest=0)).shaped(CODECS[name], parsed(name, sent), form)
    assert found is not None
    return found


def said_in(name: str, sent: Mapping[str, Any]) -> list[Any]:
    return list(sent[{"gemini": "contents", "openai_responses": "input"}.get(name, "messages")])


def problems(name: str, sent: dict[str, Any]) -> list[str]:
    return [*PROBLEMS[name](sent), *CONVERSATIONS[name](sent)]


def asked(*results: str, tool: str = "unit_1", ends: bool = False) -> Any:
    steps = tuple(AgentStep(text="", calls=((tool, {"what": "it"}),)) for _ in results)
    return (UserTurn(said="Hello", steps=steps, end="Done." if ends else ""),)


@formats
@pytest.mark.requirement("results.llm")
def test_over_random_conversations_what_was_valid_stays_valid_and_what_was_sent_is_sent_again(name: str) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        talk=conversations(),
        results=st.lists(st.sampled_from(RESULTS), min_size=30, max_size=30),
        form=st.sampled_from(["shaped", "handle"]),
        smallest=st.sampled_from([0, 2_000]),
    )
    def holds(talk: Any, results: list[str], form: str, smallest: int) -> None:
        remembers = RequestResults(OPTIONS, COUNTER, smallest=smallest)
        before: list[Any] = []
        offered = False
        for turn in range(len(talk)):
            for step in range(len(talk[turn].steps) + 1):
                now = UserTurn(said=talk[turn].said, steps=talk[turn].steps[:step], end="")
                sent = talk_body(name, (*talk[:turn], now), results)
                found = shaped(name, sent, form, by=remembers)
                made = json.loads(found.body)
                assert problems(name, made) == []
                assert said_in(name, made)[: len(before)] == before
                fresh = RequestResults(OPTIONS, COUNTER, smallest=smallest)
                assert shaped(name, sent, form, by=fresh).body == found.body
                assert not offered or found.reads is not None
                before, offered = said_in(name, made), found.reads is not None

    holds()


@formats
@pytest.mark.requirement("results.llm")
def test_a_result_is_a_table_and_every_byte_beside_the_results_stays(name: str) -> None:
    sent = talk_body(name, asked(SMALL, "ok", PAGE), [SMALL, "ok", PAGE])

    found = shaped(name, sent, "shaped")

    made = json.loads(found.body)
    (table,) = re.findall(r"@1 20 rows(?:[^\"\\]|\\.)*", found.body.decode())
    assert restored(json.loads(f'"{table}"')) == ROWS[:20]
    assert found.reads is None
    assert [tool for tool, _ in found.told] == []  # the model has seen it
    assert said_in(name, made)[-1] == said_in(name, sent)[-1]
    assert json.dumps({**made, "x": 0}).replace(" ", "") != json.dumps({**sent, "x": 0}).replace(" ", "")


def test_results_that_two_threads_shape_at_once_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise there would seem to be no room for any, once it had happened often."""
    monkeypatch.setattr(request_results, "MOST_REMEMBERED", 30_000)
    by, shape = RequestResults(OPTIONS, COUNTER, smallest=0), request_results.shape
    for number in range(30):
        sent = talk_body("openai_chat", asked(LOG), [f"{number}\n{LOG}"])

        def meanwhile(*given: Any, sent: Any = sent, **named: Any) -> Any:
            monkeypatch.setattr(request_results, "shape", shape)
            shaped("openai_chat", sent, "shaped", by=by)
            return shape(*given, **named)

        monkeypatch.setattr(request_results, "shape", meanwhile)
        assert shaped("openai_chat", sent, "shaped", by=by).told != []
    assert by._remembered == sum(size for size, _ in by._shapes.values()) > 0


@formats
def test_what_stays_whole(name: str) -> None:
    """Errors, tools that the policy leaves, reads of files, results of nobody, and everything in the form `whole`."""
    assert shaped(name, talk_body(name, asked(SMALL, tool="weather_forecast"), [SMALL])).told == []
    sent = talk_body(name, asked(SMALL), [SMALL])
    assert RequestResults(OPTIONS, COUNTER, smallest=0).shaped(CODECS[name], parsed(name, sent), "whole") is None
    text = json.dumps(sent).replace("unit_1", "mcp__disk__read_file")
    assert shaped(name, json.loads(text)).told == []
    text = json.dumps(sent).replace("unit_1", "mcp__files__read_file")
    assert [tool for tool, _ in shaped(name, json.loads(text)).told] == ["mcp__files__read_file"]
    if name == "anthropic":
        sent["messages"][-1]["content"][0]["is_error"] = True
        assert shaped(name, sent).told == []
    if name == "gemini":
        sent["contents"][-1]["parts"][0]["functionResponse"]["response"] = {"error": SMALL}
        assert shaped(name, sent).told == []


def test_an_agents_own_tools_stay_whole_unless_a_pattern_names_them() -> None:
    sent = talk_body("anthropic", asked(SMALL), [SMALL])
    request = parsed("anthropic", sent)
    own = tuple(msgspec.structs.replace(tool, protected="own") for tool in request.tools)
    request = replace(request, tools=own)
    codec = CODECS["anthropic"]

    found = RequestResults(OPTIONS, COUNTER, smallest=0).shaped(codec, request, "shaped")
    assert found is not None
    assert found.told == []
    named = ResultSettings(threshold=50, budget=400, tools={"*/unit_1": "shaped"})
    found = RequestResults(named, COUNTER, smallest=0).shaped(codec, request, "shaped")
    assert found is not None
    assert len(found.told) == 1


@formats
def test_what_is_cut_keeps_the_rows_about_the_words_before_its_call(name: str) -> None:
    """Of the user, of the model since, and of the call; not of what comes later, which would change what was sent."""
    one = AgentStep(text="I look for part 211.", calls=(("unit_1", {"what": "part 222"}),))
    talk: Any = (
        UserTurn(said="About part 233, please", steps=(one,), end="Done."),
        UserTurn(said="And what of part 244?", steps=(), end=""),
    )

    found = shaped(name, talk_body(name, talk, [BIG])).body.decode()

    assert [at for at in (211, 222, 233, 244, 255) if f"part {at}\\t" in found] == [211, 222, 233]


def test_a_breakpoint_that_moves_changes_no_shape() -> None:
    results = [BIG, LOG, BIG]
    sent = talk_body("anthropic", asked(*results), results)
    before = said_in("anthropic", json.loads(shaped("anthropic", sent).body))
    for message in sent["messages"]:
        message["content"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    after = said_in("anthropic", json.loads(shaped("anthropic", sent).body))
    for message in after:
        assert message["content"][-1].pop("cache_control") == {"type": "ephemeral", "ttl": "1h"}
    assert after == before


def test_a_long_run_of_blanks_before_a_breakpoint_is_read_once() -> None:
    sent = talk_body("anthropic", asked(BIG), [BIG])
    sent["messages"][0]["content"] = [{"type": "text", "text": " " * 6_000, "cache_control": {"type": "ephemeral"}}]
    began = time.monotonic()

    assert shaped("anthropic", sent).told
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (b'{"a":1, "cache_control": {"type": "ephemeral"}}', 40),
        (b'{"cache_control":{} }', 18),
        (b'{"a":1,, \n, "cache_control" :{"b":{}}, "cache_control":{}}', 20),
        (b'{"cache_control":{},"cache_control":{}}', 37),
    ],
)
def test_a_breakpoint_is_counted_with_one_comma_and_the_blanks_around_it(text: bytes, size: int) -> None:
    found = request_results._moved(text, 0, len(text))

    assert found == size


def test_nothing_is_cut_where_nobody_could_read_on() -> None:
    sent = talk_body("openai_responses", asked(BIG), [BIG])
    for changed in (
        {"store": True},
        {"tools": []},
        {"tools": [{"type": "function", "name": "read_result", "parameters": SCHEMA}]},
    ):
        found = shaped("openai_responses", sent | changed)
        assert found.reads is None
        assert b"left out" not in found.body


def test_a_prompt_does_not_become_too_short_for_a_cache() -> None:
    """Providers cache prompts of some thousand tokens and more."""
    sent = talk_body("anthropic", asked(SMALL), [SMALL])
    assert shaped("anthropic", sent, by=RequestResults(OPTIONS, COUNTER)).told == []
    longer = talk_body(
        "anthropic", (UserTurn(said="words and " * 4_000, steps=asked(SMALL)[0].steps, end=""),), [SMALL]
    )
    assert len(shaped("anthropic", longer, by=RequestResults(OPTIONS, COUNTER)).told) == 1


def test_a_cut_that_costs_more_than_it_saves_is_not_made() -> None:
    """A short beginning of the prompt, much talk, and then a result that is little longer than the budget."""
    talk = (UserTurn(said="words and " * 4_000, steps=asked(BIG)[0].steps, end=""),)
    assert shaped("anthropic", talk_body("anthropic", talk, [LOG[: len(LOG) // 3]])).reads is None
    assert shaped("anthropic", talk_body("anthropic", asked(BIG), [BIG])).reads is not None


def reader(seen: Seen) -> Says:
    """Reads what was cut, once; then says what it has."""
    found = HANDLE.search(json.dumps(seen.body))
    if "read_result" in seen.tools and "read_result" not in seen.answered and found:
        return Says(
            text="Wait.", calls=[Calls(tool="read_result", arguments={"handle": found[1], "grep": "part 1999"})]
        )
    return Says(text="All of it is done.")


@pytest.fixture(scope="module")
def results_door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Results are cut; models called `off-…` are not filtered, `one-…` call by one tool, `defer-…` search."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PEGBOARD_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        environment.setenv("PEGBOARD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        rules = [
            {"model": "off-*", "filter": False},
            {"model": "one-*", "ways": ("call_tool",)},
            {"model": "defer-*", "ways": ("defer",)},
            {"model": "gpt-5.4", "ways": ("defer",)},
            {"model": "plain-*", "results": "whole"},
        ]
        policy = {"k": 2, "ways": ("tools",), "way_back": True, "results": "handle"}
        with gateway_beside(policy=policy, rules=rules, programs="on") as found:
            yield found


@pytest.fixture
def gateway(results_door: Gateway) -> Iterator[Gateway]:
    results_door.mock.received.clear()
    results_door.mock.refused.clear()
    results_door.mock.model = reader
    yield results_door
    results_door.mock.model = None


LONG = json.dumps([{"id": at, "name": f"part {at}", "weight": at / 4} for at in range(2_000)])


def post(gateway: Gateway, name: str, model: str, *, stream: bool, **headers: str) -> str:
    sent = talk_body(name, asked(LONG), [LONG], model=model)
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = PATHS[name].format(model=model, method=method)
    if name != "gemini":
        sent["stream"] = stream
    keys = {"authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k", "anthropic-version": "2023-06-01"}
    found = httpx2.post(gateway.url + path, json=sent, headers=keys | headers, timeout=60)
    assert found.status_code == 200, found.text
    return found.text


@formats
@pytest.mark.requirement("results.llm")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["off-1", "some-1", "one-1", "defer-1", "claude-sonnet-4-5"])
def test_the_model_reads_on_within_the_request_and_the_client_sees_one_answer(
    gateway: Gateway, name: str, stream: bool, model: str
) -> None:
    before = len(gateway.events.of(ResultShaped)), len(gateway.events.of(ResultRead))
    told = post(gateway, name, model, stream=stream)

    first, second = ((each.body.decode()) for each in gateway.mock.received)
    assert "read_result" in first
    assert r"\tpart 1999" not in first
    assert r"\tpart 1999" in second
    assert "All of it is done." in "".join(TEXT.findall(told))
    assert "read_result" not in told
    assert gateway.mock.refused == []
    after = len(gateway.events.of(ResultShaped)), len(gateway.events.of(ResultRead))
    assert after == (before[0] + 1, before[1] + 1)
    assert (gateway.events.of(ResultShaped)[-1].door, gateway.events.of(ResultRead)[-1].door) == ("llm", "llm")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("tool", ["read_result", "run_program"])
def test_where_searches_load_tools_the_answer_of_a_read_is_one_of_a_function(
    gateway: Gateway, tool: str, stream: bool
) -> None:
    gateway.mock.model = reader if tool == "read_result" else programmer
    told = post(gateway, "openai_responses", "gpt-5.4", stream=stream)

    first, second = (each.json for each in gateway.mock.received)
    assert "tool_search" in [each["type"] for each in first["tools"]]
    assert second["input"][-1]["type"] == "function_call_output"
    assert ("part 1999" if tool == "read_result" else "in all") in second["input"][-1]["output"]
    assert gateway.mock.refused == []
    assert tool not in "".join(TEXT.findall(told))


def endless(*calls: Calls) -> Model:
    """Makes these calls in every answer, until nobody would wait any longer."""
    answers = iter([Says(calls=calls)] * 30)
    return lambda seen: next(answers, Says(text="Enough."))


def through(tool: str, **arguments: Any) -> Calls:
    return Calls(tool="call_tool", arguments={"name": tool, "arguments": arguments})


READ, WRONG = through("read_result", handle="r0", grep="part"), through("no_such_tool")


@formats
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("calls", "requests"),
    [([READ], 1 + MOST_READS), ([READ, WRONG], 1 + MOST_ROUNDS), ([WRONG], 1 + MOST_ROUNDS)],
    ids=["reads", "reads and wrong calls", "wrong calls"],
)
def test_a_model_that_never_stops_reading_through_call_tool_comes_to_an_end(
    gateway: Gateway, name: str, stream: bool, calls: list[Calls], requests: int
) -> None:
    gateway.mock.model = endless(*calls)
    told = post(gateway, name, "one-1", stream=stream)

    assert len(gateway.mock.received) == requests
    assert gateway.mock.refused == []
    assert "Enough." not in told


def test_reads_and_wrong_calls_in_turn_come_to_an_end_too(gateway: Gateway) -> None:
    turns = iter([Says(calls=[READ]), Says(calls=[WRONG])] * 15)
    gateway.mock.model = lambda seen: next(turns, Says(text="Enough."))
    post(gateway, "openai_chat", "one-1", stream=False)

    assert len(gateway.mock.received) == 2 * MOST_ROUNDS + 2  # the wrong call that is no longer answered is the last


def programmer(seen: Seen) -> Says:
    """Runs a program over what was cut, once; then says what it has."""
    found = HANDLE.search(json.dumps(seen.body))
    if "run_program" in seen.tools and "run_program" not in seen.answered and found:
        program = f"rows = await result('{found[1]}')\nprint('in all', sum(row['weight'] for row in rows))"
        return Says(text="Wait.", calls=[Calls(tool="run_program", arguments={"program": program})])
    return Says(text="All of it is done.")


@formats
@pytest.mark.requirement("programs.results")
@pytest.mark.parametrize(("model", "stream"), [("off-1", False), ("some-1", True), ("one-1", False), ("defer-1", True)])
def test_the_model_runs_a_program_over_what_was_cut_and_the_client_sees_one_answer(
    gateway: Gateway, name: str, stream: bool, model: str
) -> None:
    gateway.mock.model = programmer
    told = post(gateway, name, model, stream=stream)

    first, second = ((each.body.decode()) for each in gateway.mock.received)
    assert "in all 499750.0" not in first
    assert "in all 499750.0" in second
    assert "All of it is done." in "".join(TEXT.findall(told))
    assert "run_program" not in told
    assert gateway.mock.refused == []
    ended = gateway.events.of(ProgramFinished)[-1]
    assert (ended.outcome, ended.calls, ended.failed) == ("ok", 1, 0)


@formats
@pytest.mark.requirement("results.llm")
def test_a_request_gets_its_results_whole_by_header_and_by_default(gateway: Gateway, name: str) -> None:
    post(gateway, name, "off-1", stream=False, **{"x-pegboard-results": "whole"})
    post(gateway, name, "plain-1", stream=False)
    post(gateway, name, "plain-1", stream=False, **{"x-pegboard-results": "shaped"})

    whole, plain, table = ((each.body.decode()) for each in gateway.mock.received)
    assert "read_result" not in whole + plain + table
    assert "2000 rows" not in whole + plain
    assert "2000 rows" in table
