"""A model searches beside calls for the client, in an answer that OpenAI keeps: the next request has the result.

The client sees one call, and continues by ids; the provider refuses a history in which a call has no result.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mock_providers.scripted import Says
from pegboard.gateways.llm.formats.openai_responses.tool_search import ResponsesJoiner
from pegboard.gateways.llm.formats.streams import named_event
from pegboard.gateways.llm.formats.tool_search import Joiner
from pegboard.gateways.llm.tool_search.tool import not_answered
from stored_talks import (
    DEFER,
    FEW,
    FEW_OFFICE,
    FLAT,
    JOBS,
    PICKED,
    SEARCHES,
    TALKS,
    Talk,
    hasty,
    hints,
    longest,
    opened,
    restarted,
    wants,
)

OUTPUTS = ("function_call_output", "tool_search_output")
ways = pytest.mark.parametrize("policy", [PICKED, DEFER], ids=["picked", "deferred"])
streamed = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


def both(talk: Talk, name: str) -> None:
    """The client is told to call the tool it named and then the one that the model searched for."""
    talk.called.clear()
    assert talk.said(wants(name)).output_text == "Done."
    assert [each for each, _ in talk.called] == [name, [*JOBS][[*JOBS].index(name) + 1]]


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize("model_", ["gpt-5.4", TALKS])
@pytest.mark.parametrize(("tools", "replicas"), [(FLAT, 1), (FEW, 2), (FEW_OFFICE, 2)], ids=["one", "two", "spaces"])
@streamed
@ways
def test_a_search_beside_a_call_is_answered_with_the_next_request(
    policy: dict[str, Any], streams: bool, tools: list[Any], replicas: int, model_: str
) -> None:
    with opened(*[policy] * replicas) as doors:
        doors.mock.model = hasty
        talk = Talk(doors, streams=streams, tools=tools, model=model_)
        for name in ("renew_loan", "convert_currency", "renew_loan"):
            both(talk, name)

        bodies = [received.json for received in doors.mock.received]
        assert len(bodies) == 3 * 3
        assert all("parallel_tool_calls" not in body for body in bodies)
        calls = {item["call_id"] for item in longest(doors) if searched(item)}
        results = [item for item in longest(doors) if item.get("type") in OUTPUTS and item["call_id"] in calls]
        assert len(results) == len(calls) >= 1
        assert "weather_forecast" in json.dumps(results[0])


def searched(item: Any) -> bool:
    name = item.get("name", item.get("type", "")).removesuffix("_call")
    return name in SEARCHES and item["call_id"].startswith("call_answer")


@pytest.mark.requirement("openai.stored-answers")
@streamed
@ways
def test_a_client_that_branches_from_an_older_answer_finds_every_search_answered(
    policy: dict[str, Any], streams: bool
) -> None:
    with opened(policy, policy) as doors:
        doors.mock.model = hasty
        talk = Talk(doors, streams=streams, tools=FEW)
        both(talk, "renew_loan")
        begun = talk.before
        first = talk.answer([{"role": "user", "content": wants("renew_loan")}])
        for _ in range(3):
            talk.before = first.id
            assert talk.done(first).output_text == "Done."
            talk.before = begun
            assert talk.answer([{"role": "user", "content": "Never mind."}]).output_text == "Done."

        assert doors.mock.refused == []


LATER: dict[str, dict[str, Any]] = {
    "whole": {"ways": ("whole",)},
    "few": {"least_tools": 1000},
    "shadow": {"shadow": True},
    "no way back": {"k": 1, "ways": ("tools",), "way_back": False},
    "deferred": DEFER,
    "picked": PICKED,
}


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
@ways
def test_whatever_is_decided_about_the_next_request_it_has_the_result(
    policy: dict[str, Any], later: dict[str, Any]
) -> None:
    with opened(policy, later) as doors:
        doors.mock.model = hasty
        talk = Talk(doors, tools=FEW)
        assert talk.said(wants("renew_loan")).output_text == "Done."

        assert [name for name, _ in talk.called] == ["renew_loan", "weather_forecast"]
        longest(doors)


@pytest.mark.requirement("openai.stored-answers")
@ways
def test_a_request_that_is_not_filtered_for_its_many_tools_has_the_result(policy: dict[str, Any]) -> None:
    with opened(policy) as doors:
        doors.mock.model = hasty
        talk = Talk(doors, tools=FEW)
        talk.answer([{"role": "user", "content": wants("renew_loan")}])
        call = next(item for item in longest(doors) if item.get("type") == "function_call" and not searched(item))
        many = [
            {"type": "web_search"},
            *({"type": "mcp", "server_label": f"s{each}", "server_url": "https://example.com"} for each in range(9000)),
        ]
        doors.mock.model = lambda seen: Says(text="Done.")
        talk.answer(
            [{"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}],
            tools=[*many, *([{"type": "tool_search"}] if policy is DEFER else [])],
        )

        assert doors.mock.refused == []


@pytest.mark.requirement("openai.stored-answers")
@ways
def test_a_process_that_starts_anew_knows_of_the_search(policy: dict[str, Any]) -> None:
    with opened(policy) as doors:
        doors.mock.model = hasty
        talk = Talk(doors, tools=FEW)
        first = talk.answer([{"role": "user", "content": wants("renew_loan")}])
        with restarted(doors, policy) as again:
            talk.next = iter(again * 9)
            assert talk.done(first).output_text == "Done."

        assert [each for each, _ in talk.called] == ["renew_loan", "weather_forecast"]
        longest(doors)


@pytest.mark.requirement("openai.stored-answers")
def test_a_conversation_object_has_no_search_and_all_its_tools() -> None:
    with opened(PICKED) as doors:
        doors.mock.model = lambda seen: Says(text="Done.")
        talk = Talk(doors, tools=FEW)
        asked = [{"role": "user", "content": hints("renew_loan")}]
        assert talk.answer(asked, conversation="conv_1", previous_response_id=openai_omits()).output_text == "Done."

        assert doors.mock.last.json["tools"] == FEW


def openai_omits() -> Any:
    import openai

    return openai.omit


def test_a_call_without_a_result_is_to_be_made_again() -> None:
    """Nothing was searched for, or the search failed."""
    assert "Make it again" in not_answered()


BEGUN = {"id": "resp_1", "status": "in_progress", "store": True, "output": []}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
SEARCH = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "search_tools", "arguments": "{}"}
TEXT = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}


def joining(*items: Any, **more: Any) -> tuple[Joiner, list[bytes]]:
    """What is passed on of an answer after each of its events."""
    joiner = ResponsesJoiner()
    joiner.begin(lambda name: name == "search_tools")
    return joiner, fed(joiner, *items, **more)


def fed(joiner: Joiner, *items: Any, **more: Any) -> list[bytes]:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": BEGUN | more}]
    for place, item in enumerate(items):
        events += [{"type": f"response.output_item.{kind}", "output_index": place, "item": item} for kind in KINDS]
    passed = [joiner.feed(named_event(event)) for event in events]
    joiner.feed(named_event({"type": "response.completed", "response": BEGUN | {"output": [*items], **more}}))
    joiner.close()
    return passed


KINDS = ("added", "done")


@pytest.mark.requirement("openai.stored-answers")
def test_a_stream_begins_at_once_and_thoughts_wait_for_what_they_lead_to() -> None:
    _, passed = joining(THOUGHT, TEXT)

    assert [b"rs_1" in each for each in passed] == [False, False, False, True, False]
    assert [bool(each) for each in passed] == [True, False, False, True, True]


@pytest.mark.requirement("openai.stored-answers")
def test_a_client_that_continues_by_ids_has_thoughts_at_once() -> None:
    _, passed = joining(THOUGHT, TEXT, previous_response_id="resp_0")

    assert all(passed)


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize("end", [lambda joiner: joiner.finish(lambda name: True), lambda joiner: joiner.failed(b"{}")])
def test_thoughts_that_only_led_to_a_search_are_not_shown(end: Callable[[Joiner], bytes]) -> None:
    joiner, passed = joining(THOUGHT, SEARCH)
    joiner.begin(lambda name: True)
    passed += fed(joiner, THOUGHT | {"id": "rs_2"}, TEXT)
    whole = b"".join([*passed, end(joiner)])

    assert b"rs_1" not in whole
    assert b"fc_1" not in whole
    assert whole.count(b"response.created\n") == 1
    assert whole.index(b"rs_2") < whole.index(b"msg_1")
