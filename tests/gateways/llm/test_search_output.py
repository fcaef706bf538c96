"""`tool_search` of Responses through the real gateway and OpenAI's SDK: the gateway is the client that executes it.

The provider is as strict as its documentation. The client knows nothing of the searches.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mock_providers.scripted import Calls, Says, Seen
from model_bodies import CODECS, PATH
from model_doors import Gateway, gateway_beside
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.formats.json_reader import object_of
from pegboard.gateways.llm.formats.openai_responses.namespaces import OWN
from pegboard.gateways.llm.formats.openai_responses.search_output import ResponsesDeferral
from pegboard.gateways.llm.formats.tool_references import DeferredTools, ReferenceExchange
from pegboard.gateways.llm.formats.tool_search import FunctionCall, SearchTool
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from strict_upstreams import PROBLEMS
from strict_upstreams.conversations import CONVERSATIONS

pytest.importorskip("openai", reason="pip install --group sdks")

import openai

JOBS = {
    "renew_loan": "Extend the due date of a borrowed book",
    "weather_forecast": "Weather of the coming days at a place",
    "convert_currency": "Convert an amount of money into another currency",
    "water_plants": "Open the valve of one garden bed",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(296)},
}
"""Three hundred tools."""
SCHEMA = {"type": "object", "properties": {"what": {"type": "string", "description": "What it is about."}}}
FLAT: list[Any] = [
    {"type": "function", "name": name, "description": said, "parameters": SCHEMA, "strict": False}
    for name, said in JOBS.items()
]
OFFICE: dict[str, Any] = {"type": "namespace", "name": "mcp__office", "description": "The office.", "tools": FLAT}
SESSION = ["weather_forecast", "renew_loan", "water_plants", "renew_loan", "weather_forecast", "convert_currency"]
"""The tool that each turn needs; two come back."""
DEFER: dict[str, Any] = {"k": 1, "ways": ("defer",)}
SEARCH = "tool_search"


def wants(name: str) -> str:
    """Says what the tool does: the router finds it."""
    return f"{JOBS[name]}, please"


def hints(name: str) -> str:
    """Says nothing of what the tool does: the model has to search."""
    return f"Number {[*JOBS].index(name)} on our list"


def asked_for(body: Any) -> tuple[str, list[Any]]:
    """The tool that the user's last words mean, and what has been said since."""
    said = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    last = max(place for place, item in enumerate(said) if item.get("role") == "user")
    words = said[last]["content"]
    return next(name for name in JOBS if words in (wants(name), hints(name))), said[last + 1 :]


def model(seen: Seen) -> Says:
    """Calls the tool that the user means, having searched for one that it does not see; then it is done."""
    name, since = asked_for(seen.body)
    if any(item.get("type") == "function_call_output" for item in since):
        return Says(text="Done. ✓")
    there = [tool for tool in seen.tools if tool.rpartition(".")[2] == name]
    if there:
        return Says(thought="Now.", calls=[Calls(tool=there[0], arguments={"what": "it"})])
    return Says(thought="Hm.", text="Let me look.", calls=[Calls(tool=SEARCH, arguments={"query": JOBS[name]})])


@contextmanager
def opened(**policy: Any) -> Iterator[Gateway]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    with gateway_beside(parts=parts, policy=policy) as found:
        found.mock.model = model
        yield found


@pytest.fixture
def door() -> Iterator[Gateway]:
    with opened(**DEFER) as found:
        yield found


def called(items: list[Any]) -> list[Any]:
    return [item for item in items if item.type == "function_call"]


class Talk:
    """A client that runs tools and sends its whole history: it knows nothing of what the gateway does."""

    def __init__(self, door: Gateway, *, streams: bool = False, tools: list[Any] = FLAT) -> None:
        self.door, self.streams, self.tools = door, streams, tools
        self.items: list[Any] = []

    def said(self, text: str) -> list[Any]:
        """The items of the answers to what the user says, each tool having been called."""
        self.items.append({"role": "user", "content": text})
        found = latest = self.answer()
        while calls := called(latest):
            self.items += [{"type": "function_call_output", "call_id": each.call_id, "output": "ok"} for each in calls]
            latest = self.answer()
            found = [*found, *latest]
        return found

    def answer(self, **more: Any) -> list[Any]:
        asked: dict[str, Any] = {"model": "gpt-5.4", "input": self.items, "tools": self.tools, "store": False}
        asked |= {"include": ["reasoning.encrypted_content"]} | more
        address = f"{self.door.url}/openai/v1"
        with openai.OpenAI(base_url=address, api_key="sk-mine", max_retries=0, timeout=60) as client:
            if self.streams:
                with client.responses.stream(**asked) as stream:
                    response = stream.get_final_response()
            else:
                response = client.responses.create(**asked)
        self.items += [item.model_dump(exclude_none=True, exclude_unset=True) for item in response.output]
        return list(response.output)


def arrived(door: Gateway) -> list[Any]:
    """The requests as they arrived; the provider had nothing to complain about."""
    assert door.mock.refused == []
    return [received.json for received in door.mock.received]


def loaded(body: Any) -> list[str]:
    """The tools that searches loaded, in order."""
    outputs = [item for item in body["input"] if isinstance(item, dict) and item.get("type") == "tool_search_output"]
    return [tool["name"] for item in outputs for space in item["tools"] for tool in space["tools"]]


def prompt(body: Any) -> str:
    return json.dumps([body["tools"], *body["input"]])[:-1]


BOTH = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
SHAPES = pytest.mark.parametrize("tools", [FLAT, [OFFICE]], ids=["flat", "namespace"])


@pytest.mark.requirement("P21")
@BOTH
@SHAPES
def test_what_each_turn_needs_is_loaded_without_a_search(door: Gateway, streams: bool, tools: list[Any]) -> None:
    talk = Talk(door, streams=streams, tools=tools)

    turns = [talk.said(wants(tool)) for tool in SESSION]

    assert [[item.name for item in called(turn)] for turn in turns] == [[tool] for tool in SESSION]
    spaces = {item.namespace for turn in turns for item in called(turn)}
    assert spaces == ({None} if tools is FLAT else {"mcp__office"})
    bodies = arrived(door)
    assert len(bodies) == 2 * len(SESSION)
    assert all([tool["type"] for tool in body["tools"]] == [SEARCH] for body in bodies)
    assert loaded(bodies[-1]) == list(dict.fromkeys(SESSION))
    assert all(prompt(after).startswith(prompt(before)) for before, after in pairwise(bodies))


@pytest.mark.requirement("P21")
@BOTH
@SHAPES
def test_the_gateway_answers_searches_and_the_client_sees_none(door: Gateway, streams: bool, tools: list[Any]) -> None:
    talk = Talk(door, streams=streams, tools=tools)

    turns = [talk.said(hints(tool)) for tool in SESSION]

    assert [[item.name for item in called(turn)] for turn in turns] == [[tool] for tool in SESSION]
    assert {item.type for turn in turns for item in turn} == {"reasoning", "message", "function_call"}
    assert len(arrived(door)) == 2 * len(SESSION) + 4
    searches = [event.searches for event in door.events.of(ModelRequestServed)]
    assert searches[: 2 * len(SESSION) - 1] == [1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1]  # the last may not be noted yet
    assert OWN not in json.dumps(talk.items)


@pytest.mark.requirement("P19", "P21")
@pytest.mark.parametrize("say", [wants, hints])
def test_a_gateway_that_has_seen_nothing_of_a_conversation_sends_the_same_bytes(door: Gateway, say: Any) -> None:
    talk = Talk(door)
    for tool in SESSION:
        talk.said(say(tool))

    with opened(**DEFER) as replica:
        again = Talk(replica)
        again.items = talk.items[: max(place for place, item in enumerate(talk.items) if "output" in item) + 1]
        again.answer()

        assert arrived(replica)[-1] == arrived(door)[-1]


@pytest.mark.requirement("P21")
@BOTH
def test_a_model_that_only_searches_gets_all_tools_at_last(door: Gateway, streams: bool) -> None:
    door.mock.model = lambda seen: Says(
        calls=[Calls(tool=SEARCH, arguments={"query": "engine"}) if SEARCH in seen.tools else Calls(tool="unit_3")]
    )
    talk = Talk(door, streams=streams, tools=FLAT[:40])
    talk.items = [{"role": "user", "content": "Hello"}]

    assert [item.name for item in talk.answer()] == ["unit_3"]
    assert [len(body["tools"]) for body in arrived(door)] == [1, 1, 1, 40]
    assert arrived(door)[-1]["input"] == talk.items[:1]


@pytest.mark.requirement("P21")
@pytest.mark.parametrize("more", [{"store": True, "tools": FLAT[:5]}, {"tools": FLAT[:5]}])
def test_where_tools_cannot_be_deferred_the_request_arrives_as_it_is(door: Gateway, more: dict[str, Any]) -> None:
    door.mock.model = lambda seen: Says(text="Hello")
    talk = Talk(door, tools=FLAT[:40])
    talk.items = [{"role": "user", "content": "Hello"}]

    talk.answer(**more)

    assert arrived(door)[-1]["tools"] == more.get("tools", FLAT[:40])


NAMES = st.sampled_from(["renew_loan", "weather_forecast", "unit_1", "unit_2"])
ITEM = st.one_of(
    st.builds(lambda said: [{"role": "user", "content": said}], st.sampled_from(["Hello", "", "Now this"])),
    st.builds(lambda: [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes"}]}]),
    st.lists(NAMES, min_size=1, max_size=3, unique=True),
)


@pytest.mark.requirement("P21")
@settings(max_examples=150, deadline=None)
@given(st.lists(ITEM, min_size=1, max_size=8), st.booleans(), st.booleans(), st.data())
def test_of_any_conversation_a_valid_request_is_made(talk: list[Any], spaced: bool, thinks: bool, data: Any) -> None:
    items: list[Any] = []
    for number, turn in enumerate(talk):
        calls = [name for name in turn if isinstance(name, str)]
        ids = [f"c{number}_{place}" for place in range(len(calls))]
        inside = {"namespace": "mcp__office"} if spaced else {}
        if calls and thinks:
            items.append({"type": "reasoning", "id": f"r{number}", "summary": [], "encrypted_content": "x"})
        items += [
            {"type": "function_call", "call_id": id_, "name": name, "arguments": "{}", **inside}
            for id_, name in zip(ids, calls, strict=True)
        ]
        items += [{"type": "function_call_output", "call_id": id_, "output": "ok"} for id_ in ids]
        items += [item for item in turn if not isinstance(item, str)]
    body = {"model": "gpt-5.4", "store": False, "input": items, "tools": [OFFICE] if spaced else FLAT}
    request = CODECS["openai_responses"].parse(json.dumps(body).encode(), PATH)
    places = st.lists(st.integers(0, 5), max_size=3, unique=True).map(tuple)
    tools = DeferredTools(
        loaded=frozenset(data.draw(st.sets(st.integers(0, 5), max_size=2))),
        kept=frozenset(range(len(request.tools))),
        search=SearchTool(name="search_tools", description="Finds tools."),
        pushed=data.draw(st.dictionaries(st.integers(0, 3), places)),
    )
    codec = ResponsesDeferral()

    sent = codec.deferred(request, tools)
    call = {"type": "tool_search_call", "call_id": "s", "execution": "client", "status": "completed", "arguments": {}}
    found = tuple(name for name in data.draw(st.lists(NAMES, unique=True)) if f'"{name}"'.encode() not in sent)
    exchange = ReferenceExchange(answer={"output": [call]}, results=[(FunctionCall(name="", id="s"), found)])
    again = codec.continued(sent, request, [exchange])

    for each in map(json.loads, (sent, again)):
        assert PROBLEMS["openai_responses"](each) + CONVERSATIONS["openai_responses"](each) == []
        mine = [item for item in each["input"] if not item.get("type", "").startswith("tool_search")]
        assert [object_of(item) | {"namespace": 0} for item in mine] == [item | {"namespace": 0} for item in items]
