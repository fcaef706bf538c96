"""Deferred tools where OpenAI keeps the answers: clients continue by id, and what searches loaded is in its history.

The client knows nothing of the searches; any of two gateways with one store may get its next request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mock_providers.scripted import Calls, Says, Seen
from model_upstream import ModelUpstream
from pegboard.clock import SYSTEM_CLOCK
from pegboard.gateways.llm.conversation.answer_store import AnswerStore, KeptAnswer
from pegboard.gateways.llm.formats.protocol import KeptSearches
from pegboard.gateways.llm.proxy.keys import Keys
from pegboard.model import Session
from pegboard.stores import MemorySessions
from processes import until
from served import OpenGateway
from stored_talks import (
    DEFER,
    FEW,
    FEW_OFFICE,
    FLAT,
    JOBS,
    OFFICE,
    SEARCH,
    SESSION,
    SILENT,
    TALKS,
    Doors,
    Talk,
    hasty,
    hints,
    longest,
    model,
    opened,
    wants,
)


def loaded(items: list[Any]) -> list[str]:
    return [
        inside["name"]
        for item in items
        if item.get("type") == "tool_search_output"
        for tool in item["tools"]
        for inside in tool.get("tools", [tool])
    ]


spoken = pytest.mark.parametrize("say", [wants, hints], ids=["wants", "hints"])
models = pytest.mark.parametrize("model_", [SILENT, TALKS], ids=["silent", "talks"])
streamed = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
spaced = pytest.mark.parametrize(
    ("tools", "namespace"), [(FLAT, None), (OFFICE, "mcp__office")], ids=["flat", "spaces"]
)


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize(
    ("tools", "namespace", "replicas"), [(FLAT, None, 1), (OFFICE, "mcp__office", 2)], ids=["flat", "spaces"]
)
@streamed
@models
@spoken
def test_three_hundred_tools_wait_while_the_provider_keeps_the_conversation(
    say: Any, model_: str, streams: bool, tools: list[Any], namespace: str | None, replicas: int
) -> None:
    with opened(*[DEFER] * replicas) as doors:
        talk = Talk(doors, streams=streams, model=model_, tools=tools)
        for tool in SESSION:
            assert talk.said(say(tool)).output_text == "Done."

        assert talk.called == [(tool, namespace) for tool in SESSION]
        brought = loaded(longest(doors))
        assert len(brought) == len(set(brought)) < 20
        assert set(SESSION) <= set(brought)
        for received in doors.mock.received:
            assert [tool["type"] for tool in received.json["tools"]] == [SEARCH]


@pytest.mark.requirement("openai.stored-answers")
def test_each_request_sends_only_what_is_new() -> None:
    with opened(DEFER) as doors:
        talk = Talk(doors)
        for tool in SESSION[:3]:
            talk.said(hints(tool))

        bodies = [received.json for received in doors.mock.received]
        assert longest(doors)
        assert all("parallel_tool_calls" not in body for body in bodies)
        assert all(len(body["input"]) <= 3 for body in bodies)
        assert len({json.dumps(body["tools"]) for body in bodies}) == 1


OFF: dict[str, dict[str, Any]] = {
    "picked": {"k": 1, "ways": ("tools",), "way_back": True},
    "whole": {"ways": ("whole",)},
    "few": {"least_tools": 1000},
    "shadow": {"shadow": True},
}


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize("policy", OFF.values(), ids=OFF)
@pytest.mark.parametrize(("tools", "namespace"), [(FEW, None), (FEW_OFFICE, "mcp__office")], ids=["flat", "spaces"])
def test_a_history_with_searches_goes_on_where_nothing_is_deferred(
    policy: dict[str, Any], tools: list[Any], namespace: str | None
) -> None:
    with opened(DEFER, policy) as doors:
        talk = Talk(doors, tools=tools)
        for tool in SESSION:
            assert talk.said(hints(tool)).output_text == "Done."

        assert talk.called == [(tool, namespace) for tool in SESSION]
        brought = loaded(longest(doors))
        assert len(brought) == len(set(brought))


def choosing(*names: str) -> dict[str, Any]:
    """A choice that allows these tools alone."""
    return {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": name} for name in names]}


@streamed
def test_a_list_of_allowed_tools_names_none_that_waits(streams: bool) -> None:
    with opened(DEFER) as doors:
        talk = Talk(doors, streams=streams, tools=FEW)
        choice = choosing(*[*JOBS][:20])
        answer = talk.answer([{"role": "user", "content": hints("renew_loan")}], tool_choice=choice)

        assert [item.name for item in answer.output if item.type == "function_call"] == ["renew_loan"]
        assert doors.mock.refused == []


@streamed
@pytest.mark.parametrize(
    "policy", [DEFER, OFF["whole"], OFF["few"], OFF["shadow"]], ids=["deferred", "whole", "few", "shadow"]
)
def test_a_later_list_of_allowed_tools_names_only_what_is_listed(policy: dict[str, Any], streams: bool) -> None:
    with opened(DEFER, policy) as doors:
        talk = Talk(doors, streams=streams, tools=FEW)
        talk.next = cycle(doors.addresses[:1])
        assert talk.said(hints("renew_loan")).output_text == "Done."
        talk.next = cycle(doors.addresses[1:])
        choice = choosing("renew_loan", "water_plants", "unit_7")
        answer = talk.answer([{"role": "user", "content": wants("water_plants")}], tool_choice=choice)

        assert [item.name for item in answer.output if item.type == "function_call"] == ["water_plants"]
        assert doors.mock.refused == []


FORCED = {"type": "function", "name": "renew_loan"}


@streamed
@pytest.mark.parametrize("choice", [FORCED, choosing("renew_loan") | {"mode": "required"}], ids=["forced", "allowed"])
@pytest.mark.parametrize("policy", [OFF["whole"], OFF["few"], OFF["shadow"]], ids=["whole", "few", "shadow"])
def test_what_a_later_choice_names_is_listed_though_it_is_loaded(
    policy: dict[str, Any], choice: dict[str, Any], streams: bool
) -> None:
    with opened(DEFER, policy) as doors:
        talk = Talk(doors, streams=streams, tools=FEW)
        talk.next = cycle(doors.addresses[:1])
        assert talk.said(hints("renew_loan")).output_text == "Done."
        talk.next = cycle(doors.addresses[1:])
        answer = talk.answer([{"role": "user", "content": wants("renew_loan")}], tool_choice=choice)

        assert [item.name for item in answer.output if item.type == "function_call"] == ["renew_loan"]
        assert doors.mock.refused == []
        assert "renew_loan" in [tool.get("name") for tool in doors.mock.last.json["tools"]]


@pytest.mark.requirement("openai.stored-answers")
def test_a_conversation_that_began_with_all_its_tools_can_have_them_deferred() -> None:
    with opened({"ways": ("whole",)}, DEFER) as doors:
        talk = Talk(doors, tools=FEW)
        for tool in SESSION:
            assert talk.said(wants(tool)).output_text == "Done."

        longest(doors)
        assert [call for call, _ in talk.called] == SESSION


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize("chained", [False, True])
@streamed
def test_a_model_that_only_searches_gets_all_tools_at_last(chained: bool, streams: bool) -> None:
    def restless(seen: Seen) -> Says:
        there = [tool for tool in seen.tools if tool.rpartition(".")[2] == "unit_29"]
        said = seen.body["input"][-1].get("type") == "function_call_output"
        if said:
            return Says(text="Done.")
        return Says(calls=[Calls(tool=there[0])] if there else [Calls(tool=SEARCH, arguments={"query": "engine"})])

    with opened({"k": 1, "ways": ("defer",)}) as doors:
        talk = Talk(doors, streams=streams, tools=FEW)
        if chained:
            talk.said(wants("renew_loan"))
        doors.mock.model = restless
        assert talk.said("Hello").output_text == "Done."

        assert talk.called[-1] == ("unit_29", None)
        doors.mock.model = model
        assert talk.said(hints("water_plants")).output_text == "Done."
        longest(doors)


@pytest.mark.requirement("openai.stored-answers")
def test_an_answer_is_asked_for_and_deleted_under_the_id_by_which_the_provider_ends() -> None:
    """The stream began with the id of an answer that went on to search."""
    with opened(DEFER, DEFER) as doors:
        talk = Talk(doors, streams=True, model=TALKS)
        response = talk.answer([{"role": "user", "content": hints("renew_loan")}])
        last = [*doors.mock.stored][-1]
        assert response.id != last
        base = f"http://{doors.addresses[1]}/openai/v1"
        with httpx2.Client(base_url=base, headers={"authorization": "Bearer sk-mine"}, trust_env=False) as client:
            for method, path in (("GET", ""), ("GET", "/input_items"), ("DELETE", "")):
                assert client.request(method, f"/responses/{response.id}{path}").status_code == 200
        with httpx2.Client(base_url=base, headers={"authorization": "Bearer sk-other"}, trust_env=False) as client:
            client.get(f"/responses/{response.id}")

        asked = [(received.method, received.target) for received in doors.mock.received[-4:]]
        assert asked == [
            ("GET", f"/v1/responses/{last}/input_items"),
            ("DELETE", f"/v1/responses/{last}"),
            ("DELETE", f"/v1/responses/{response.id}"),
            ("GET", f"/v1/responses/{response.id}"),
        ]


@pytest.mark.requirement("openai.stored-answers")
@streamed
def test_with_an_answer_go_those_before_it_that_only_searched_once_it_is_deleted(streams: bool) -> None:
    """The client, which knows one id, asks another gateway than the one that searched."""
    with opened(DEFER, DEFER) as doors:
        talk = Talk(doors, streams=streams, model=TALKS)
        response = talk.answer([{"role": "user", "content": hints("renew_loan")}])
        first, last = [*doors.mock.stored]
        assert response.id == (first if streams else last)

        def asked(method: str) -> list[tuple[int, str, str]]:
            doors.mock.forget()
            base = f"http://{doors.addresses[1]}/openai/v1"
            with httpx2.Client(base_url=base, headers={"authorization": "Bearer sk-mine"}, trust_env=False) as client:
                status = client.request(method, f"/responses/{response.id}").status_code
            return [(status, each.method, each.target.removeprefix("/v1/responses/")) for each in doors.mock.received]

        doors.mock.status = 503
        assert asked("DELETE") == [(503, "DELETE", last)]
        assert asked("GET") == [(503, "GET", last)]
        doors.mock.status = 200
        assert asked("DELETE") == [(200, "DELETE", last), (200, "DELETE", first)]
        assert asked("GET") == [(200, "GET", response.id)]


@pytest.mark.parametrize(("mood", "refused"), [("mute", 0), ("error", 3)])
async def test_answers_before_a_deleted_one_are_deleted_at_once_whatever_becomes_of_each(
    gateway_of: OpenGateway, upstream: ModelUpstream, caplog: pytest.LogCaptureFixture, mood: str, refused: int
) -> None:
    """The provider answers none before it has been asked for all, or refuses each."""
    sessions, key = MemorySessions(SYSTEM_CLOCK), "Bearer sk-mine"
    owner = Keys({}).owner("openai", None, [(b"authorization", key.encode())])
    earlier = ("resp_1", "resp_2", "resp_3")
    kept = KeptAnswer(last="resp_4", conversation="", called=frozenset(), kept=KeptSearches(), earlier=earlier)
    await AnswerStore(sessions).save(owner, ["resp_4"], kept, "")
    upstream.bodies, upstream.mood = [b"{}"], mood
    async with gateway_of(parts={"sessions": sessions}) as gateway:
        path = "/openai/v1/responses/resp_4"
        deleted = asyncio.create_task(gateway.http.delete(path, headers={"authorization": key}))
        await until(lambda: len(upstream.sent) == 4)
        upstream.release.set()
        assert (await deleted).status_code == 200

    assert sorted(each.target.rpartition("/")[2] for each in upstream.sent[1:]) == [*earlier]
    assert caplog.text.count("kept an answer") == refused


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.parametrize("leaves_open", [False, True], ids=["answered", "open call"])
def test_a_shorter_history_is_asked_for_by_the_id_with_which_the_provider_ends(leaves_open: bool) -> None:
    with opened(DEFER, DEFER) as doors:
        said = hints("renew_loan")
        if leaves_open:
            doors.mock.model, said = hasty, wants("renew_loan")
        response = Talk(doors, streams=True, model=TALKS).answer([{"role": "user", "content": said}])
        last = [*doors.mock.stored][-1]
        assert (response.id == last) is leaves_open
        body = b'{"model": "gpt-5.4",  "input" : null, "previous_response_id":"%b", "instructions":"\\u00e9" }'
        mine, unknown, no_json = body % response.id.encode(), body % b"resp_unknown", b"{"

        assert condensed(doors, unknown) == unknown
        assert condensed(doors, no_json) == no_json
        assert condensed(doors, mine, "sk-other") == mine
        sent = condensed(doors, mine)
        if leaves_open:
            before, results, behind = sent.partition(sent[sent.index(b"[") : sent.rindex(b"]") + 1])
            assert before + b"null" + behind == mine
            (result,) = json.loads(results)
            assert result["type"] == "tool_search_output"
            assert result["call_id"] in [item.get("call_id") for item in doors.mock.stored[last]]
        else:
            assert sent == body % last.encode()


def condensed(doors: Doors, body: bytes, key: str = "sk-mine") -> bytes:
    """What arrives at the provider of a request for a shorter history."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    with httpx2.Client(headers=headers, trust_env=False) as client:
        url = f"http://{doors.addresses[1]}/openai/v1/responses/compact"
        assert client.post(url, content=body).status_code == 200
    return doors.mock.received[-1].body


class Broken(MemorySessions):
    async def load(self, key: str) -> Session | None:
        raise TimeoutError

    async def save(self, session: Session) -> Session:
        raise TimeoutError


@pytest.mark.requirement("openai.stored-answers")
def test_without_the_store_a_process_continues_its_own_conversations() -> None:
    with opened(DEFER, sessions=Broken(SYSTEM_CLOCK)) as doors:
        talk = Talk(doors)
        for tool in SESSION:
            assert talk.said(hints(tool)).output_text == "Done."

        longest(doors)


@settings(max_examples=10, deadline=None)
@given(
    turns=st.lists(st.tuples(st.sampled_from([*JOBS][:5]), st.booleans(), st.booleans()), min_size=1, max_size=6),
    streams=st.booleans(),
    talks=st.booleans(),
    office=st.booleans(),
)
@pytest.mark.requirement("openai.stored-answers")
def test_over_any_conversation_the_provider_accepts_every_request(
    several: Doors, turns: list[tuple[str, bool, bool]], streams: bool, talks: bool, office: bool
) -> None:
    talk = Talk(several, streams=streams, model=TALKS if talks else SILENT, tools=OFFICE if office else FLAT)
    for tool, hinted, first in turns:
        talk.next = cycle(several.addresses if first else several.addresses[::-1])
        assert talk.said(hints(tool) if hinted else wants(tool)).output_text == "Done."

    assert [call for call, _ in talk.called] == [tool for tool, _, _ in turns]
    assert several.mock.refused == []


@pytest.fixture(scope="module")
def several() -> Iterator[Doors]:
    with opened(DEFER, DEFER) as doors:
        yield doors
