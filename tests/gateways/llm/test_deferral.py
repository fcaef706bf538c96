"""Deferred tools through the real gateway and Anthropic's SDK: a scripted model searches for what it was not given.

The provider is as strict as its documentation, and searches as it does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest

from mock_providers.scripted import Calls, Says, Seen
from mock_providers.tool_search import NAME, prompt
from model_bodies import CODECS, PATH
from model_doors import Gateway, gateway_beside
from pegboard.events import ModelRequestServed, ShadowMeasured
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

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
"""The tool that each turn needs: the first is in the prompt, others have to be found, and two come back."""
DEFER: dict[str, Any] = {"k": 1, "ways": ("defer",)}


def wants(name: str) -> str:
    return f"{JOBS[name]}, please"


def model(seen: Seen) -> Says:
    """Calls the tool that the user wants, having searched for one that it does not see; then it is done."""
    said = seen.body["messages"][-1]["content"]
    if not isinstance(said, str):
        return Says(text="Done. ✓")
    tool = next(name for name in JOBS if wants(name) == said)
    if tool not in seen.tools:
        return Says(text="Let me look for that.", searches=JOBS[tool])
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

    def __init__(self, door: Gateway, *, streams: bool = False, tools: list[Any] = MARKED) -> None:
        self.door = door
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
        asked |= {"messages": self.messages, "tools": self.tools} | more
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
def test_over_a_conversation_the_model_finds_and_calls_what_each_turn_needs(door: Gateway, streams: bool) -> None:
    talk = Talk(door, streams=streams)

    turns = [talk.said(wants(tool)) for tool in SESSION]

    called = [[block.name for answer in turn for block in answer.content if block.type == "tool_use"] for turn in turns]
    assert called == [[tool] for tool in SESSION]
    searching = [*("text", "server_tool_use", "tool_search_tool_result"), "tool_use", "text"]
    assert [blocks(turn) == searching for turn in turns] == [False, True, True, False, False, True]
    for body in arrived(door):
        assert loaded(body) == [NAME, "weather_forecast"]
        assert len(body["tools"]) == len(JOBS) + 1


@pytest.mark.requirement("P18", "P19", "P21")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_whatever_is_found_each_prompt_begins_with_the_one_before(door: Gateway, streams: bool) -> None:
    talk = Talk(door, streams=streams)
    for tool in SESSION:
        talk.said(wants(tool))

    prompts = [prompt(body) for body in arrived(door)]
    assert len(prompts) == 2 * len(SESSION)
    assert all(after.startswith(before) for before, after in pairwise(prompts))
    offered = [CODECS["anthropic"].parse(received.body, PATH).tools for received in door.mock.received]
    assert len({tuple(tool.definition for tool in tools) for tools in offered}) == 1


@pytest.mark.requirement("P20", "P21")
def test_the_breakpoint_on_the_last_tool_goes_to_the_last_that_is_in_the_prompt(door: Gateway) -> None:
    Talk(door).said(wants("renew_loan"))

    (search, first, *others), _ = (body["tools"] for body in arrived(door))
    assert search["name"] == NAME
    assert first == TOOLS[0] | {"cache_control": MARK}
    assert not any("cache_control" in tool for tool in others)


@pytest.mark.requirement("P19", "P21")
def test_a_replica_that_has_seen_nothing_of_a_conversation_sends_the_same_bytes(door: Gateway) -> None:
    talk = Talk(door)
    for tool in SESSION:
        talk.said(wants(tool))
    forced = {"type": "tool", "name": "unit_7"}
    talk.said(wants("unit_7"), tool_choice=forced)
    talk.said(wants("renew_loan"))

    with opened(**DEFER) as replica:
        again = Talk(replica)
        again.messages = talk.messages[:-1]
        again.answer()

        assert replica.mock.last.body == door.mock.last.body
        assert loaded(arrived(replica)[-1]) == [NAME, "weather_forecast", "unit_7"]


@pytest.mark.requirement("P8", "P21")
def test_a_forced_tool_is_in_the_prompt_and_stays_there(door: Gateway) -> None:
    talk = Talk(door)
    talk.said(wants("weather_forecast"))
    talk.said(wants("water_plants"), tool_choice={"type": "tool", "name": "water_plants"})
    talk.said(wants("renew_loan"))

    before, after = [NAME, "weather_forecast"], [NAME, "weather_forecast", "water_plants"]
    assert [loaded(body) for body in arrived(door)] == [before, before, after, after, after, after]


@pytest.mark.requirement("P8", "P21")
def test_a_forced_tool_that_was_found_before_is_in_the_prompt_for_that_request_alone(door: Gateway) -> None:
    """The history has its definition before the call, and goes on having it."""
    talk = Talk(door)
    talk.said(wants("weather_forecast"))
    talk.said(wants("renew_loan"))
    talk.said(wants("renew_loan"), tool_choice={"type": "tool", "name": "renew_loan"})
    talk.said(wants("renew_loan"))

    forced, *after = [loaded(body) for body in arrived(door)[4:]]
    assert forced == [NAME, "renew_loan", "weather_forecast"]
    assert after == [[NAME, "weather_forecast"]] * 3


@pytest.mark.requirement("P9", "P21")
def test_where_a_call_is_required_there_is_something_to_call() -> None:
    with opened(**DEFER, profile="semantic", threshold=0.99, when_none="none") as picky:
        talk = Talk(picky)
        talk.messages = [{"role": "user", "content": "Hello"}]
        picky.mock.model = lambda seen: Says(text="Hello.")
        talk.answer()
        talk.messages.append({"role": "user", "content": "Do it"})
        talk.answer(tool_choice={"type": "any"})

        first, second = arrived(picky)
        assert loaded(first) == [NAME]
        assert loaded(second) == list(JOBS)
        assert "a call is required" in picky.said["x-pegboard-reason"]


def test_a_conversation_that_begins_without_a_word_has_all_its_tools_deferred(door: Gateway) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    talk = Talk(door)
    talk.messages = [{"role": "user", "content": [picture]}]
    talk.answer()
    talk.said(wants("renew_loan"))
    with opened(**DEFER) as replica:
        again = Talk(replica)
        again.messages = talk.messages
        again.said(wants("renew_loan"))

        assert {tuple(loaded(body)) for body in [*arrived(door), *arrived(replica)]} == {(NAME,)}


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

    assert door.said["x-pegboard-cache"] == f"defer; {len(JOBS) - 1} tools are deferred"
    assert door.said["x-pegboard-filter"] == "filtered"
    assert door.said["x-pegboard-tools"] == f"1/{len(JOBS)}"
    after, before = map(int, door.said["x-pegboard-tokens"].split("/"))
    assert 0 < after < before / 10
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
def test_turned_off_in_mid_conversation_what_was_found_stays_valid(
    door: Gateway, rules: list[Any], policy: dict[str, Any]
) -> None:
    talk = Talk(door)
    for tool in SESSION[:3]:
        talk.said(wants(tool))

    with opened(rules, k=1, **policy) as other:
        goes_on(talk, other)


@pytest.mark.requirement("P21")
def test_where_nothing_can_be_picked_what_was_found_stays_valid(door: Gateway) -> None:
    talk = Talk(door)
    for tool in SESSION[:3]:
        talk.said(wants(tool))

    with opened(encoder=FakeEncoder(broken=True), **DEFER) as other:
        goes_on(talk, other)

        assert other.said["x-pegboard-filter"] == "failed"


def goes_on(talk: Talk, door: Gateway) -> None:
    """Behind another gateway, which defers nothing: what was found is there, and what the history holds is valid."""
    after = Talk(door)
    after.messages = talk.messages
    assert "tool_use" in blocks(after.said(wants("renew_loan")))
    for body in arrived(door):
        assert loaded(body) == [tool["name"] for tool in body["tools"]]
        assert loaded(body)[0] == NAME
        assert {"renew_loan", "water_plants"} <= set(loaded(body))


@pytest.mark.requirement("P21")
def test_a_found_tool_that_the_caller_takes_away_leaves_no_reference(door: Gateway) -> None:
    talk = Talk(door)
    for tool in SESSION[:3]:
        talk.said(wants(tool))
    talk.tools = [tool for tool in TOOLS if tool["name"] != "renew_loan"]
    talk.said(wants("convert_currency"))

    last = json.dumps(arrived(door)[-1])
    assert '"tool_name": "renew_loan"' not in last
    assert '"tool_name": "water_plants"' in last


@pytest.mark.requirement("P21")
@pytest.mark.parametrize(
    ("tools", "why"),
    [
        (TOOLS[:9], "8 tools would be deferred"),
        (
            [
                {"type": "tool_search_tool_bm25_20251119", "name": NAME},
                *TOOLS[:20],
                TOOLS[20] | {"defer_loading": True},
            ],
            "already has deferred tools",
        ),
        ([*TOOLS, TOOLS[0] | {"name": NAME}], "no search"),
    ],
    ids=["few", "own", "name"],
)
def test_what_cannot_be_deferred_arrives_as_it_came(door: Gateway, tools: list[Any], why: str) -> None:
    Talk(door, tools=tools).said(wants("weather_forecast"))

    assert all(body["tools"] == tools for body in arrived(door))
    assert why in door.noting.said[0]["x-pegboard-reason"]


@pytest.mark.requirement("P21")
def test_a_model_that_has_no_search_gets_all_tools(door: Gateway) -> None:
    Talk(door).said(wants("weather_forecast"), model="claude-opus-4-1")

    assert arrived(door)[0]["tools"] == MARKED


def test_tools_that_are_never_to_be_used_cannot_be_found() -> None:
    with opened(**DEFER, never=("unit_1*",), always=("water_plants",)) as door:
        Talk(door).said(wants("renew_loan"))

        body = arrived(door)[0]
        assert loaded(body) == [NAME, "renew_loan", "water_plants"]
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
        measured = door.events.of(ShadowMeasured)
        assert [event.missed for event in measured if event.called] == [()] * len([e for e in measured if e.called])
        assert any(event.called for event in measured)
