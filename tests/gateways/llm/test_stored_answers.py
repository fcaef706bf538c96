"""The way back where OpenAI keeps the answers: clients continue by id, and its history has every round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mock_providers.scripted import Calls, Says, Seen
from model_doors import Gateway, gateway_beside
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

pytest.importorskip("openai", reason="pip install --group sdks")

import openai

JOBS = {
    "renew_loan": "Extend the due date of a borrowed book",
    "weather_forecast": "Weather of the coming days at a place",
    "convert_currency": "Convert an amount of money into another currency",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(30)},
}
TOOLS: list[Any] = [
    {"type": "function", "name": name, "description": said, "parameters": {"type": "object"}, "strict": False}
    for name, said in JOBS.items()
]
SESSION = ["weather_forecast", "renew_loan", "weather_forecast"]
SEARCH = "search_tools"
SILENT, TALKS = "gpt-5.4", "gpt-5.5"
"""The second writes a text before it searches."""


def model(seen: Seen) -> Says:
    """Calls the tool whose number the user says, after a search where it does not see it."""
    said = seen.body["input"]
    last = max(place for place, item in enumerate(said) if item.get("role") == "user")
    name = [*JOBS][int(said[last]["content"])]
    done = {item["call_id"] for item in said[last:] if item.get("type") == "function_call_output"}
    if any(item.get("name") == name and item.get("call_id") in done for item in said[last:]):
        return Says(text="Done.")
    if name in seen.tools:
        return Says(thought="Now.", calls=[Calls(tool=name)])
    text = "Let me look." if seen.body.get("model") == TALKS else ""
    return Says(thought="Hm.", text=text, calls=[Calls(tool=SEARCH, arguments={"query": JOBS[name]})])


@contextmanager
def opened(**policy: Any) -> Iterator[Gateway]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    with gateway_beside(parts=parts, policy={"k": 1, "least_tools": 0, "least_tokens": 0} | policy) as found:
        found.mock.model = model
        yield found


@pytest.fixture
def door() -> Iterator[Gateway]:
    with opened(ways=["tools"], way_back=True) as found:
        yield found


def asked(door: Gateway, streams: bool, model: str = SILENT, key: str = "sk-mine", **more: Any) -> Any:
    more = {"tools": TOOLS} | more
    with openai.OpenAI(base_url=f"{door.url}/openai/v1", api_key=key, max_retries=0, timeout=60) as client:
        if not streams:
            return client.responses.create(model=model, **more)
        ids = set()
        with client.responses.stream(model=model, **more) as stream:
            for event in stream:
                ids |= {event.response.id} if hasattr(event, "response") else set()
            response = stream.get_final_response()
        assert ids == {response.id}
        return response


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize("model", [SILENT, TALKS], ids=["silent", "talks"])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_conversation_that_the_provider_keeps_goes_on_by_the_id_of_what_the_client_got(
    door: Gateway, streams: bool, model: str
) -> None:
    goes_on(door, streams, model)


def goes_on(door: Gateway, streams: bool, model: str, **more: Any) -> None:
    called, before = [], None
    for tool in SESSION:
        number = [{"role": "user", "content": str([*JOBS].index(tool))}]
        response = asked(door, streams, model, input=number, previous_response_id=before, **more)
        calls = [item for item in response.output if item.type == "function_call"]
        assert {item.type for item in response.output} <= {"reasoning", "function_call", "message"}
        called += [call.name for call in calls]
        results: list[Any] = [
            {"type": "function_call_output", "call_id": each.call_id, "output": "ok"} for each in calls
        ]
        response = asked(door, streams, model, input=results, previous_response_id=response.id, **more)
        assert response.output_text == "Done."
        before = response.id

    assert called == SESSION
    assert door.mock.refused == []
    searches = [sum(item.get("name") == SEARCH for item in items) for items in door.mock.stored.values()]
    assert max(searches) >= 1


def test_the_model_may_call_in_parallel_if_the_client_lets_it(door: Gateway) -> None:
    for allowed in ({}, {"parallel_tool_calls": True}, {"parallel_tool_calls": False}):
        asked(door, False, input=[{"role": "user", "content": "1"}], **allowed)

        assert SEARCH in {tool["name"] for tool in door.mock.received[-2].json["tools"]}
        assert allowed.items() <= door.mock.last.json.items()
        assert ("parallel_tool_calls" in door.mock.last.json) is bool(allowed)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("search", [True, False], ids=["searches", "does not search"])
def test_a_history_of_references_to_kept_items_is_sent_the_same_tools_as_one_of_items(
    streams: bool, search: bool
) -> None:
    with opened(ways=["tools"], way_back=search) as door:
        by_items = steps(door, streams, "sk-items", lambda item: item)
        by_references = steps(door, streams, "sk-references", lambda item: {"type": "item_reference", "id": item["id"]})
        bare = steps(door, streams, "sk-bare", lambda item: {"id": item["id"]})

    assert door.mock.refused == []
    assert by_items == by_references == bare
    assert {len(tools) for tools, _ in by_items} < {*range(len(TOOLS))}
    assert all("first turn" not in why for _, why in by_items[1 + search :])


def steps(door: Gateway, streams: bool, key: str, repeated: Callable[[Any], Any]) -> list[tuple[list[Any], str]]:
    """The tools of each request and what was done about them, over two turns of two steps in which the client repeats
    what came before like this."""
    door.mock.forget()
    history: list[Any] = []
    why: list[str] = []
    for number in ("0", "1"):
        history.append({"role": "user", "content": number})
        for _ in range(2):
            before = len(door.mock.received)
            response = asked(door, streams, input=history, key=key)
            why += [door.said["x-pegboard-cache"]] * (len(door.mock.received) - before)
            output = [item.model_dump(exclude_none=True) for item in response.output]
            history += map(repeated, output)
            history += [
                {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
                for item in output
                if item["type"] == "function_call"
            ]
    return list(zip([received.json["tools"] for received in door.mock.received], why, strict=True))
