"""Deferred tools through the real gateway and Anthropic's SDK: a scripted model searches for what it was not given.

The provider is as strict as its documentation. The client knows nothing of the searches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from mock_providers.scripted import Calls, Says, Seen
from mock_providers.tool_search import prompt, referenced
from model_bodies import CODECS, PATH
from model_doors import Gateway, gateway_beside
from pegboard.events import ModelRequestServed, ShadowMeasured
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from processes import eventually

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

import anthropic

JOBS = {
    "renew_loan": "Extend the due date of a borrowed book",
    "weather_forecast": "Weather of the coming days at a place",
    "convert_currency": "Convert an amount of money into another currency",
    "water_plants": "Open the valve of one garden bed",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(30)},
}
SCHEMA = {"type": "object", "properties": {"what": {"type": "string", "description": "What it is about."}}}
MARK = {"type": "ephemeral"}
TOOLS: list[Any] = [{"name": name, "description": said, "input_schema": SCHEMA} for name, said in JOBS.items()]
MARKED: list[Any] = [*TOOLS[:-1], TOOLS[-1] | {"cache_control": MARK}]
SYSTEM = "You run the back office of a library."
SESSION = ["weather_forecast", "renew_loan", "water_plants", "renew_loan", "weather_forecast", "convert_currency"]
"""The tool that each turn needs; two come back."""
NAME, OFFICE = "search_tools", "mcp__office__"
DEFER: dict[str, Any] = {"k": 1, "ways": ("defer",)}


def wants(name: str) -> str:
    """Says what the tool does: the router finds it."""
    return f"{JOBS[name]}, please"


def hints(name: str) -> str:
    """Says nothing of what the tool does: the model has to search."""
    return f"Number {[*JOBS].index(name)} on our list"


def model(seen: Seen) -> Says:
    """Calls the tool that the user means, having searched for one that it does not see; then it is done."""
    places = [place for place, said in enumerate(seen.body["messages"]) if isinstance(said["content"], str)]
    asked = seen.body["messages"][places[-1]]["content"]
    since = [block for said in seen.body["messages"][places[-1] + 1 :] for block in said["content"]]
    if any(block["type"] == "tool_use" and block["name"] != NAME for block in since):
        return Says(text="Done. ✓")
    tool = next(name for name in JOBS if asked in (wants(name), hints(name)))
    if tool not in seen.tools:
        return Says(text="Let me look for that.", calls=[Calls(tool=NAME, arguments={"query": JOBS[tool]})])
    return Says(calls=[Calls(tool=tool, arguments={"what": "it"})])


@contextmanager
def opened(rules: Any = (), encoder: Any = None, **policy: Any) -> Iterator[Gateway]:
    parts = {"encoder": encoder or FakeEncoder(), "embeddings": MemoryEmbeddings()}
    with gateway_beside(parts=parts, policy=policy, rules=rules) as found:
        found.mock.model = model
        yield found


@pytest.fixture
def door() -> Iterator[Gateway]:
    with opened(**DEFER) as found:
        yield found


class Talk:
    """A client that runs tools: it knows nothing of what the gateway does."""

    def __init__(
        self, door: Gateway, *, streams: bool = False, tools: list[Any] = MARKED, options: dict[str, Any] | None = None
    ) -> None:
        self.door = door
        self.options = options or {}
        self.streams = streams
        self.tools = tools
        self.messages: list[Any] = []

    def said(self, text: str, **more: Any) -> list[anthropic.types.Message]:
        """The answers to what the user says, each tool having been called."""
        self.messages.append({"role": "user", "content": text})
        answers = [self.answer(**more)]
        while results := [
            {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
            for block in answers[-1].content
            if block.type == "tool_use"
        ]:
            self.messages.append({"role": "user", "content": results})
            answers.append(self.answer())
        return answers

    def answer(self, **more: Any) -> anthropic.types.Message:
        asked: dict[str, Any] = {"model": "claude-sonnet-5", "max_tokens": 100, "system": SYSTEM}
        asked |= {"messages": self.messages, "tools": self.tools} | self.options | more
        address = f"{self.door.url}/anthropic"
        with anthropic.Anthropic(base_url=address, api_key="sk-mine", max_retries=0, timeout=60) as client:
            if self.streams:
                with client.messages.stream(**asked) as stream:
                    message: anthropic.types.Message = stream.get_final_message()
            else:
                message = client.messages.create(**asked)
        self.messages.append({"role": "assistant", "content": message.content})
        return message


def blocks(answers: list[anthropic.types.Message]) -> list[str]:
    return [block.type for answer in answers for block in answer.content]


def arrived(door: Gateway) -> list[Any]:
    """The requests as they arrived; the provider had nothing to complain about."""
    assert door.mock.refused == []
    return [received.json for received in door.mock.received]


def loaded(body: Any) -> list[str]:
    return [tool["name"] for tool in body["tools"] if not tool.get("defer_loading")]


@pytest.mark.requirement("P21")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_what_each_turn_needs_is_there_without_a_search(door: Gateway, streams: bool) -> None:
    talk = Talk(door, streams=streams)

    turns = [talk.said(wants(tool)) for tool in SESSION]

    called = [[block.name for answer in turn for block in answer.content if block.type == "tool_use"] for turn in turns]
    assert called == [[tool] for tool in SESSION]
    bodies = arrived(door)
    assert len(bodies) == 2 * len(SESSION)
    for body in bodies:
        assert loaded(body) == [NAME]
        assert len(body["tools"]) == len(JOBS) + 1
    assert list(referenced(bodies[-1]["messages"])) == list(dict.fromkeys(SESSION))


@pytest.mark.requirement("P21")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_the_gateway_answers_searches_and_the_client_sees_one_answer(door: Gateway, streams: bool) -> None:
    talk = Talk(door, streams=streams)

    turns = [talk.said(hints(tool)) for tool in SESSION]

    called = [[block.name for answer in turn for block in answer.content if block.type == "tool_use"] for turn in turns]
    assert called == [[tool] for tool in SESSION]
    searching = ["text", "tool_use", "text"]
    assert [blocks(turn) == searching for turn in turns] == [True, True, True, False, False, True]
    assert len(arrived(door)) == 2 * len(SESSION) + 4
    searches = [event.searches for event in door.events.of(ModelRequestServed)]
    assert searches[:11] == [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1]  # the last answer's event may come after the answer


LONG = "It takes what it is about, checks who asks, writes it to the books, and says what has changed. " * 3
MANY: list[Any] = [
    {"name": f"mcp__office__{name}", "description": f"{said}. {LONG}", "input_schema": SCHEMA}
    for name, said in [*JOBS.items(), *((f"device_{n}", f"Switch device {n} in room {n}") for n in range(270))]
]
OWN: list[Any] = [
    {"name": name, "description": f"{name}, of the agent's own.", "input_schema": SCHEMA}
    for name in ("list_directory", "read_file", "grep_search", "glob", "replace", "write_file", "run_shell_command")
]
AGENT = {"user-agent": "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)"}


@pytest.mark.requirement("P18", "P21")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_an_agents_own_tools_stay_and_three_hundred_of_its_servers_wait(streams: bool) -> None:
    """The cheapest way, by the priors: what no conversation needs is not sent, and the beginning is always the same."""

    def office(seen: Seen) -> Says:
        says = model(Seen(tools=tuple(name.removeprefix(OFFICE) for name in seen.tools), answered=(), body=seen.body))
        calls = [call if call.tool == NAME else Calls(tool=OFFICE + call.tool) for call in says.calls]
        return Says(text=says.text, calls=calls)

    with opened(ways=("whole", "call_tool", "defer")) as door:
        door.mock.model = office
        talk = Talk(door, streams=streams, tools=[*OWN, *MANY], options={"extra_headers": AGENT})
        turns = [talk.said(say(tool)) for tool in SESSION for say in (wants, hints)]

        called = [block.name for turn in turns for each in turn for block in each.content if block.type == "tool_use"]
        assert called == [OFFICE + tool for tool in SESSION for _ in range(2)]
        assert {tuple(loaded(body)) for body in arrived(door)} == {(NAME, *(tool["name"] for tool in OWN))}
        assert door.said["x-pegboard-cache"].startswith("defer; 304 tools are deferred")


@pytest.mark.requirement("P18", "P19", "P21")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_whatever_is_pushed_each_prompt_begins_with_the_one_before(door: Gateway, streams: bool) -> None:
    talk = Talk(door, streams=streams)
    for tool in SESSION:
        talk.said(wants(tool))

    prompts = [prompt(body) for body in arrived(door)]
    assert all(after.startswith(before) for before, after in pairwise(prompts))
    offered = [CODECS["anthropic"].parse(received.body, PATH).tools for received in door.mock.received]
    assert len({tuple(tool.definition for tool in tools) for tools in offered}) == 1


@pytest.mark.requirement("P18", "P19", "P21")
def test_after_a_search_the_prompt_stays_up_to_what_the_user_said(door: Gateway) -> None:
    """The breakpoints of clients are there. The exchange behind it is told again as the client's history has it."""
    talk = Talk(door)
    for tool in SESSION:
        talk.said(hints(tool))

    messages = [body["messages"] for body in arrived(door)]
    for before, after in pairwise(messages):
        said = [place for place, message in enumerate(before) if isinstance(message["content"], str)]
        assert after[: said[-1] + 1] == before[: said[-1] + 1]


@pytest.mark.requirement("P18", "P21")
def test_all_conversations_begin_with_the_same_bytes(door: Gateway) -> None:
    for tool in SESSION:
        Talk(door).said(wants(tool))

    beginnings = {json.dumps([body["tools"], body["system"]]) for body in arrived(door)}
    assert len(beginnings) == 1


@pytest.mark.requirement("P20", "P21")
def test_the_breakpoint_on_the_last_tool_goes_to_the_last_that_is_in_the_prompt(door: Gateway) -> None:
    Talk(door).said(wants("renew_loan"))

    (search, *others), _ = (body["tools"] for body in arrived(door))
    assert (search["name"], search["cache_control"]) == (NAME, MARK)
    assert not any("cache_control" in tool for tool in others)


@pytest.mark.requirement("P19", "P21")
@pytest.mark.parametrize("say", [wants, hints])
def test_a_replica_that_has_seen_nothing_of_a_conversation_sends_the_same_bytes(door: Gateway, say: Any) -> None:
    talk = Talk(door)
    for tool in SESSION:
        talk.said(say(tool))
    talk.said(say("unit_7"), tool_choice={"type": "tool", "name": "unit_7"})
    talk.said(say("renew_loan"))

    with opened(**DEFER) as replica:
        again = Talk(replica)
        again.messages = talk.messages[:-1]
        again.answer()

        assert replica.mock.last.body == door.mock.last.body
        assert loaded(arrived(replica)[-1]) == [NAME]


@pytest.mark.requirement("P8", "P21")
def test_a_forced_tool_is_in_the_prompt_for_that_request_alone(door: Gateway) -> None:
    """From then on the history refers to it, and the prompt begins as it did before."""
    talk = Talk(door)
    talk.said(hints("weather_forecast"))
    talk.said(hints("water_plants"), tool_choice={"type": "tool", "name": "water_plants"})
    talk.said(hints("renew_loan"))

    forced = [loaded(body) for body in arrived(door)]
    assert [NAME, "water_plants"] in forced
    assert loaded(arrived(door)[-1]) == [NAME]
    assert "water_plants" in referenced(arrived(door)[-1]["messages"])


@pytest.mark.requirement("P9", "P21")
def test_where_a_call_is_required_the_model_may_search() -> None:
    with opened(**DEFER, profile="semantic", threshold=0.99, when_none="none") as picky:
        talk = Talk(picky)
        talk.said(hints("renew_loan"), tool_choice={"type": "any"})

        assert [loaded(body) for body in arrived(picky)] == [[NAME]] * 3


@pytest.mark.requirement("P21")
def test_with_a_budget_for_thinking_nothing_is_pushed_and_the_first_tools_are_in_the_prompt(door: Gateway) -> None:
    """An answer must then begin with a thinking block, and the gateway cannot write one."""
    thinking = {"type": "enabled", "budget_tokens": 1024}

    def thinks(seen: Seen) -> Says:
        says = model(seen)
        return Says(thought="Hm.", text=says.text, calls=says.calls)

    door.mock.model = thinks
    talk = Talk(door, options={"thinking": thinking, "max_tokens": 2048})
    for tool in SESSION:
        talk.said(wants(tool))

    bodies = arrived(door)
    assert all(loaded(body) == [NAME, "weather_forecast"] for body in bodies)
    assert list(referenced(bodies[-1]["messages"])) == ["renew_loan", "water_plants", "convert_currency"]


@pytest.mark.requirement("P21")
def test_a_model_that_only_searches_gets_all_tools_at_last(door: Gateway) -> None:
    door.mock.model = lambda seen: Says(
        calls=[Calls(tool=NAME, arguments={"query": "engine"})] if NAME in seen.tools else [Calls(tool="unit_3")]
    )
    talk = Talk(door)
    talk.messages = [{"role": "user", "content": "Hello"}]

    answer = talk.answer()

    assert [block.name for block in answer.content] == ["unit_3"]
    assert [len(loaded(body)) for body in arrived(door)] == [1, 1, 1, len(JOBS)]


def test_a_conversation_that_begins_without_a_word_has_all_its_tools_deferred(door: Gateway) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    door.mock.model = lambda seen: Says(text="A picture.")
    talk = Talk(door)
    talk.messages = [{"role": "user", "content": [picture]}]
    talk.answer()

    (body,) = arrived(door)
    assert loaded(body) == [NAME]
    assert body["messages"] == [{"role": "user", "content": [picture]}]


def test_a_choice_of_none_changes_nothing_of_the_prompt(door: Gateway) -> None:
    talk = Talk(door)
    talk.said(wants("weather_forecast"))
    talk.said(wants("renew_loan"))
    talk.messages.append({"role": "user", "content": "What was that?"})
    door.mock.model = lambda seen: Says(text="A book.")
    talk.answer(tool_choice={"type": "none"})

    *_, before, after = arrived(door)
    assert after["tools"] == before["tools"]


def test_the_header_and_the_event_say_that_tools_wait_and_what_the_others_weigh(door: Gateway) -> None:
    Talk(door).said(wants("weather_forecast"))

    waiting = f"{len(JOBS)} tools are deferred, 1 of them loaded by reference; Pegboard searches"
    assert door.said["x-pegboard-cache"] == f"defer; {waiting}"
    assert door.said["x-pegboard-filter"] == "filtered"
    assert door.said["x-pegboard-tools"] == f"1/{len(JOBS)}"
    after, before = map(int, door.said["x-pegboard-tokens"].split("/"))
    assert 0 < after < before
    event = door.events.of(ModelRequestServed)[0]
    assert (event.cache, event.narrowed, event.kept, event.called) == ("defer", False, 1, ("weather_forecast",))


@pytest.mark.requirement("P21")
def test_tokens_are_counted_of_what_a_message_would_have(door: Gateway) -> None:
    talk = Talk(door)
    talk.said(wants("weather_forecast"))
    talk.said(wants("renew_loan"))
    door.mock.model = None
    with anthropic.Anthropic(base_url=f"{door.url}/anthropic", api_key="sk-mine", max_retries=0) as client:
        client.messages.count_tokens(model="claude-sonnet-5", system=SYSTEM, messages=talk.messages[:-1], tools=MARKED)

    *_, before, counted = arrived(door)
    assert door.mock.last.target == "/v1/messages/count_tokens"
    assert counted["tools"] == before["tools"]
    assert counted["messages"] == before["messages"]


OFF: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "fewer tools": ([], {"ways": ("tools",)}),
    "all tools": ([], {"least_tools": 1000}),
    "no filter": ([{"model": "claude-*", "filter": False}], {}),
    "in the shadow": ([], {"shadow": True}),
}


@pytest.mark.requirement("P21")
@pytest.mark.parametrize(("rules", "policy"), OFF.values(), ids=OFF)
def test_turned_off_in_mid_conversation_the_history_is_the_clients_own(
    door: Gateway, rules: list[Any], policy: dict[str, Any]
) -> None:
    talk = Talk(door)
    for tool in SESSION[:3]:
        talk.said(hints(tool))

    with opened(rules, k=1, **policy) as other:
        goes_on(talk, other)


@pytest.mark.requirement("P21")
def test_where_nothing_can_be_picked_the_history_is_the_clients_own(door: Gateway) -> None:
    talk = Talk(door)
    for tool in SESSION[:3]:
        talk.said(hints(tool))

    with opened(encoder=FakeEncoder(broken=True), **DEFER) as other:
        goes_on(talk, other)

        assert other.said["x-pegboard-filter"] == "failed"


def goes_on(talk: Talk, door: Gateway) -> None:
    """Behind another gateway, which defers nothing."""
    after = Talk(door)
    after.messages = talk.messages
    assert "tool_use" in blocks(after.said(wants("renew_loan")))
    for body in arrived(door):
        assert NAME not in json.dumps(body)
        assert "tool_reference" not in json.dumps(body)
        assert "renew_loan" in loaded(body)


@pytest.mark.requirement("P21")
def test_a_called_tool_that_the_caller_takes_away_leaves_no_reference(door: Gateway) -> None:
    talk = Talk(door)
    for tool in SESSION[:3]:
        talk.said(hints(tool))
    talk.tools = [tool for tool in TOOLS if tool["name"] != "renew_loan"]
    talk.said(hints("convert_currency"))

    found = list(referenced(arrived(door)[-1]["messages"]))
    assert "renew_loan" not in found
    assert "water_plants" in found


@pytest.mark.requirement("anthropic.defer-loading")
@pytest.mark.requirement("P21")
@pytest.mark.parametrize(
    ("tools", "why"),
    [
        (TOOLS[:9], "9 tools would be deferred"),
        (
            [
                {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
                *TOOLS[:20],
                TOOLS[20] | {"defer_loading": True},
            ],
            "already has deferred tools",
        ),
        ([{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, *TOOLS], "its own"),
    ],
    ids=["few", "deferred", "search"],
)
def test_what_cannot_be_deferred_arrives_as_it_came(door: Gateway, tools: list[Any], why: str) -> None:
    Talk(door, tools=tools).said(wants("weather_forecast"))

    assert all(body["tools"] == tools for body in arrived(door))
    assert why in door.noting.said[0]["x-pegboard-reason"]


def test_a_tool_of_the_callers_may_have_the_name_of_the_search(door: Gateway) -> None:
    talk = Talk(door, tools=[*TOOLS, TOOLS[0] | {"name": NAME}])
    talk.said(wants("weather_forecast"))

    assert loaded(arrived(door)[0]) == [f"{NAME}_2", NAME]


@pytest.mark.requirement("P21")
def test_a_model_that_has_no_search_gets_one_tool_for_all(door: Gateway) -> None:
    door.mock.model = lambda seen: Says(text="So.")
    Talk(door).said(wants("weather_forecast"), model="claude-opus-4-1")

    assert [tool["name"] for tool in arrived(door)[0]["tools"]] == ["call_tool"]


def test_tools_that_are_never_to_be_used_cannot_be_found() -> None:
    with opened(**DEFER, never=("unit_1*",), always=("water_plants",)) as door:
        Talk(door).said(wants("renew_loan"))

        body = arrived(door)[0]
        assert loaded(body) == [NAME, "water_plants"]
        assert "unit_10" not in body["tools"][0]["description"]
        assert not any(tool["name"].startswith("unit_1") for tool in body["tools"])


def test_tools_that_are_never_to_be_used_do_not_come_where_the_others_are_too_few_to_wait() -> None:
    with opened(**DEFER, never=("unit_*",)) as door:
        Talk(door).said(wants("renew_loan"))

        assert loaded(arrived(door)[0]) == [name for name in JOBS if not name.startswith("unit_")]
        assert door.said["x-pegboard-filter"] == "filtered"


def test_in_the_shadow_a_call_of_a_tool_that_could_have_been_found_is_no_miss() -> None:
    with opened(**DEFER, shadow=True) as door:
        talk = Talk(door)
        talk.said(wants("weather_forecast"))
        talk.said(wants("renew_loan"))

        assert all(body["tools"] == MARKED for body in arrived(door))
        assert eventually(lambda: len(door.events.of(ShadowMeasured)) == len(arrived(door)))
        measured = door.events.of(ShadowMeasured)
        assert [event.missed for event in measured if event.called] == [()] * len([e for e in measured if e.called])
        assert any(event.called for event in measured)
