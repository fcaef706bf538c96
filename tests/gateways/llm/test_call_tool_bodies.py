"""Requests by way of `call_tool`: valid, every other byte as it came, and translated back the client's own."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from model_bodies import CALL_TOOL, CODECS, NAMES, PATH, asking, called, forcing, function, parsed
from model_requests import BODIES, chat_bodies, written_requests
from one_tool_models import OWN, restored
from pegboard import Catalog
from pegboard.catalog import BpeCounter
from pegboard.catalog.name_lines import HOW
from pegboard.gateways.llm.call_tool import prompts
from pegboard.gateways.llm.call_tool.disclosure import MOST, STEP, Disclosure, disclosure
from pegboard.gateways.llm.call_tool.exchange import CallToolGate
from pegboard.gateways.llm.call_tool.plan import closed, prepared, round_trip_of
from pegboard.gateways.llm.conversation import stickiness
from pegboard.gateways.llm.formats.call_translation import (
    TranslatedCall,
    unwrapped,
    wrapped_in_text,
    wrapped_object,
    wrapped_text,
)
from pegboard.gateways.llm.formats.json_spans import members
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.tool_choice import left_alone
from pegboard.gateways.llm.selection import board_cache
from pegboard.gateways.llm.selection.board_cache import BoardCache, Pick, ShownPicks
from pegboard.gateways.llm.selection.cache_aware_selection import UNCACHED, SelectionTerms
from pegboard.model import Message, Part, Turn
from pegboard.protocols import Filter
from pegboard.routing import PROFILES, Profile
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder, fake_tool
from strict_upstreams import PROBLEMS

formats = pytest.mark.parametrize("name", CALL_TOOL)
MENDED = {"tools", "messages", "input", "contents"}
PROFILE = PROFILES["semantic"].with_overrides(k=1)
TERMS = SelectionTerms(always=frozenset(), barred=frozenset(), when_none="none", turns=1, prices=UNCACHED)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(), values, max_size=4)
tool_names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,15}", fullmatch=True).filter(lambda name: name != OWN)


def board_of(catalog: Catalog, profile: Profile) -> RoutingBoard:
    encoder = FakeEncoder()
    return RoutingBoard(catalog, profile, documents=encoder, queries=encoder, events=MemoryEvents(), clock=FakeClock())


def rewritten(codec: Codec, request: LlmRequest, shown: Any = None, budget: int | None = None) -> bytes:
    """The body; ``shown`` are the places of the tools that are shown before the user's first message."""
    board = asyncio.run(BoardCache(board_of).of(codec, request.tools, PROFILE))
    of_messages = Disclosure(before={0: tuple(shown)} if shown else {})
    plan = asyncio.run(prepared(codec, request, board, of_messages, barred=(), budget=budget))
    return round_trip_of(codec, request, plan).body()


@given(name=tool_names, said=st.text() | objects.map(json.dumps))
@example(name="fly", said='{"to": 1.0, "big": 123456789012345678901234567890, "half": "\\ud83d"}')
@example(name="fly", said='"a string"')
@example(name="fly", said="")
@example(name="fly", said="[1]")
def test_a_call_whose_arguments_are_a_string_is_the_same_there_and_back(name: str, said: str) -> None:
    raw = json.dumps(said).encode()

    there = json.loads(wrapped_text(name, raw))
    back = unwrapped(there, OWN)

    assert json.loads(there)["name"] == name
    assert back is not None
    assert (back.name, back.arguments.strip()) == (name, said.strip())


@given(name=tool_names, said=objects)
def test_a_call_whose_arguments_are_an_object_is_the_same_there_and_back(name: str, said: dict[str, Any]) -> None:
    raw = json.dumps(said, indent=1).encode()

    for wrap in (wrapped_object, wrapped_in_text):
        back = unwrapped(wrap(name, raw).decode(), OWN)

        assert back is not None
        assert (back.name, back.arguments.encode()) == (name, raw)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ('{"name": "fly", "arguments": {"to": 1.0}}', ("fly", '{"to": 1.0}')),
        ('{"arguments": {"to": 1.0}, "name": "fly"}', ("fly", '{"to": 1.0}')),
        ('{"name": "fly", "arguments": "{\\"to\\": 1.0}"}', ("fly", '{"to": 1.0}')),
        ('{"name": "fly", "to": 1.0}', ("fly", '{"to":1.0}')),
        ('{"name": "fly", "arguments": null}', ("fly", "{}")),
        ('{"name": "fly"}', ("fly", "{}")),
        ('{"name": "fly", "name": "swim", "arguments": {}}', ("swim", "{}")),
        ('{"name": "call_tool", "arguments": {"name": "fly", "arguments": {"to": 1}}}', ("fly", '{"to": 1}')),
        ('{"name": "fly", "arguments": {"to": NaN}}', ("fly", '{"to": NaN}')),
        ('{"name": "fly", "to": -Infinity}', ("fly", '{"to":-Infinity}')),
        ('{"name": "fly", "arguments": {"to": "Ro', ("fly", '{"to": "Ro')),
        ('{"name": "call_tool", "arguments": {}}', None),
        ('{"arguments": {}}', None),
        ('{"name": "", "arguments": {}}', None),
        ('{"name": "fl', None),
        ('{"name": "", "arguments": {"to": "Ro', None),
        (r'{"name": "C:\dir", "arguments": {}}', None),
        (r'{"name": "fly\u12", "arguments": {}}', None),
        ('{"name": "fly\n", "arguments": {"to": "Ro', None),
        (r'{"name": "fl\u0079", "arguments": {"to": "Ro', ("fly", '{"to": "Ro')),
        ("[]", None),
        ("", None),
    ],
)
def test_what_models_make_of_a_call_is_understood(said: str, meant: tuple[str, str] | None) -> None:
    call = unwrapped(said, OWN)

    assert (call and (call.name, call.arguments)) == meant


@pytest.mark.requirement("P15", "P20", "P22", "P23")
@formats
def test_what_was_valid_stays_so_and_what_was_sent_comes_out_again(name: str) -> None:
    codec = CODECS[name]

    @given(
        body=written_requests((chat_bodies() if name == "openai_chat" else BODIES[name]).map(with_functions)),
        data=st.data(),
    )
    def holds(body: bytes, data: st.DataObject) -> None:
        request = codec.parse(body, PATH)
        assume(not left_alone(request) and not closed(codec, request, ""))
        said = any(message.role == "user" and message.text.strip() for message in request.turn.messages)
        callable_ = [place for place, tool in enumerate(request.tools) if not tool.hosted]
        shown = data.draw(st.sets(st.sampled_from(callable_))) if said else ()

        out = rewritten(codec, request, shown)

        assert PROBLEMS[name](json.loads(out)) == []
        offered = codec.parse(out, PATH).tools
        own = next(tool.name for tool in offered if not tool.hosted)
        assert [tool.definition for tool in offered if tool.hosted and name != "gemini"] == [
            tool.definition for tool in request.tools if tool.hosted and name != "gemini"
        ]
        assert [bool(tool.breakpoint) for tool in offered if tool.name == own] == [
            any(tool.breakpoint for tool in request.tools if not tool.hosted)
        ]
        assert others(out) == others(body)
        before, after = (
            {key: value for key, value in json.loads(each).items() if key != "tools"} for each in (body, out)
        )
        assert restored(after, own) == before
        assert all(f'{{\\"name\\":\\"{request.tools[place].name}\\"'.encode() in out for place in shown)

    holds()


@formats
def test_a_lone_half_of_an_emoji_in_a_body_keeps_its_place(name: str) -> None:
    body = json.dumps(asking(name, "cut \ud83d here")).encode()

    assert b"cut \\ud83d here" in rewritten(CODECS[name], CODECS[name].parse(body, PATH), [0])


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("openai_chat", {"n": 2}),
        ("openai_chat", {"tools": [function("alpha", strict=True)]}),
        ("openai_chat", {"tools": [function("alpha"), {"type": "custom", "custom": {"name": "beta"}}]}),
        ("openai_responses", {}),
        ("openai_responses", {"store": False, "previous_response_id": "r"}),
        ("openai_responses", {"store": False, "conversation": {"id": "c"}}),
        ("openai_responses", {"store": False, "tools": [{"type": "function", "name": "alpha", "strict": True}]}),
        ("openai_responses", {"store": False, "tools": [{"type": "custom", "name": "alpha"}]}),
        ("anthropic", {"tools": [{"name": "alpha", "input_schema": {}, "strict": True}]}),
        ("anthropic", {"tools": [{"name": "alpha", "input_schema": {}, "allowed_callers": ["code_execution"]}]}),
        ("anthropic", {"context_management": {"edits": [{"exclude_tools": ["alpha"]}]}}),
        ("anthropic", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]}),
        ("gemini", {"generation_config": {"candidate_count": 2}}),
        ("gemini", {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}}),
        *((name, forcing(name, "alpha")) for name in CALL_TOOL),
    ],
)
def test_some_requests_call_their_tools_natively(name: str, more: dict[str, Any]) -> None:
    assert closed(CODECS[name], parsed(name, asking(name) | more), "")


@formats
def test_others_do_not(name: str) -> None:
    request = parsed(name, asking(name, store=False))

    assert closed(CODECS[name], request, "") == ""


def test_a_stream_of_geminis_that_is_no_stream_of_events_does() -> None:
    path = PATH.replace(":generateContent", ":streamGenerateContent")
    request = CODECS["gemini"].parse(json.dumps(asking("gemini")).encode(), path)

    assert closed(CODECS["gemini"], request, "key=1")
    assert not closed(CODECS["gemini"], request, "alt=sse")


def test_calls_of_hosted_tools_that_the_client_runs_stay_what_they_are() -> None:
    body = asking("anthropic")
    body["messages"] += called("anthropic", "bash")
    body["tools"].append({"type": "bash_20250124", "name": "bash"})

    out = json.loads(rewritten(CODECS["anthropic"], parsed("anthropic", body)))

    assert out["messages"][1:] == body["messages"][1:]


def test_results_of_a_tool_that_stays_keep_its_name() -> None:
    body = asking("openai_chat")
    for tool in ("alpha", "beta"):
        call, result = called("openai_chat", tool)
        body["messages"] += [call, result | {"name": tool}]
    request = parsed("openai_chat", body)
    alpha, *others_ = request.tools
    request = replace(request, tools=(msgspec.structs.replace(alpha, protected="it stays"), *others_))

    out = json.loads(rewritten(CODECS["openai_chat"], request))

    assert [message["name"] for message in out["messages"] if message["role"] == "tool"] == ["alpha", OWN]
    calls = [call["function"]["name"] for message in out["messages"] for call in message.get("tool_calls", ())]
    assert calls == ["alpha", OWN]


def test_arguments_that_a_client_sends_as_an_object_stay_what_they_are() -> None:
    body = asking("openai_chat")
    body["messages"] += called("openai_chat", "alpha")
    body["messages"][-2]["tool_calls"][0]["function"]["arguments"] = {"to": 1.0}

    out = json.loads(rewritten(CODECS["openai_chat"], parsed("openai_chat", body)))

    function_ = out["messages"][-2]["tool_calls"][0]["function"]
    assert function_ == {"name": OWN, "arguments": {"name": "alpha", "arguments": {"to": 1.0}}}


def test_the_pool_has_a_line_for_each_tool_or_the_names_of_all() -> None:
    tools = [replace(fake_tool(f"tool_{number}"), summary=f"tool_{number}: Does it all") for number in range(20)]

    lines, names = (prompts.description(tools, BpeCounter(), budget) for budget in (None, 50))

    assert len(lines) > len(names)
    assert "\ntool_: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19" in names
    assert HOW in names


@pytest.mark.requirement("llm.names-in-few-tokens")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("mcp__jira__get_issue", "mcp__jira__get_issue"),
        ("jira__get_issue", "mcp__jira__get_issue"),
        ("get_issue", "mcp__jira__get_issue"),
        ("issue", "issue"),
        ("et_issue", "et_issue"),
        ("search", "search"),
        ("", ""),
    ],
)
def test_a_name_without_its_beginning_means_the_one_tool_whose_name_ends_so(written: str, meant: str) -> None:
    names = ["mcp__jira__get_issue", "mcp__jira__search", "mcp__wiki__search", "mcp__jira__add_issue"]
    gate = CallToolGate(own=OWN, callable={name: [fake_tool(name)] for name in names}, shown=set())

    assert gate.meant(TranslatedCall(name=written, arguments="{}")).name == meant


def test_in_a_conversation_beyond_all_measure_the_oldest_are_forgotten_many_at_once() -> None:
    codec = CODECS["openai_chat"]

    async def shown(messages: int) -> Disclosure:
        said = [
            Message(role="user", parts=(Part(text=NAMES[number % 2] if number < 3 else f"{number}"),))
            for number in range(messages)
        ]
        request = parsed("openai_chat", asking("openai_chat"))
        asked = LlmRequest(
            body=request.body,
            text=request.text,
            fields=request.fields,
            tools=request.tools,
            turn=Turn(messages=tuple(said)),
        )
        board = await BoardCache(board_of).of(codec, asked.tools, PROFILE)
        return await disclosure(asked, board, "last_user", None, TERMS, {})

    most, more = asyncio.run(shown(MOST)), asyncio.run(shown(MOST + 1))

    assert 0 in most.before
    assert min(more.before) >= STEP


@dataclass
class CountedRouting:
    """Routes as another, and counts how often."""

    of: RoutingBoard
    routed: int = 0

    async def choices(self, turn: Turn, among: Any = None) -> Any:
        self.routed += 1
        return await self.of.choices(turn, among)


def test_the_messages_of_conversations_in_turn_are_each_routed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stickiness, "MOST_PICKS", 8)
    request, only = parsed("openai_chat", asking("openai_chat")), Filter(only=frozenset())

    def said(conversation: int, messages: int) -> LlmRequest:
        texts = [f"{NAMES[number % 2]} {conversation} {number}" for number in range(messages)]
        messages_ = tuple(Message(role="user", parts=(Part(text=text),)) for text in texts)
        return replace(request, turn=Turn(messages=messages_))

    async def routed() -> list[int]:
        board = await BoardCache(board_of).of(CODECS["openai_chat"], request.tools, PROFILE)
        routing, counts = CountedRouting(board.routing), []
        counted = replace(board, routing=cast("RoutingBoard", routing))
        shown: list[Disclosure] = []
        for messages in (20, 21):
            for conversation in range(3):
                asked = said(conversation, messages)
                shown.append(await disclosure(asked, counted, "last_user", None, TERMS, {}))
                again = await disclosure(asked, counted, "last_user", None, TERMS, {})
                assert again == shown[-1]
            counts.append(routing.routed)
        await disclosure(said(0, 21), counted, "last_user", only, TERMS, {})
        assert any(each.places for each in shown)
        return [*counts, routing.routed]

    assert asyncio.run(routed()) == [60, 63, 84]


def test_what_messages_were_shown_is_kept_within_a_bound_for_all_boards_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board_cache, "MOST_SHOWN", 5)
    store: OrderedDict[bytes, Pick] = OrderedDict()
    one, two = ShownPicks(store), ShownPicks(store)
    picks = {f"{number}": Pick(relevant=(number,), likely=(7, 8)) for number in range(4)}
    one.keep(picks, None)
    two.keep({"0": Pick(relevant=(9,), likely=())}, None)

    assert one.known([*picks, "4"], None) == {query: replace(pick, likely=()) for query, pick in picks.items()}
    assert one.known(["0"], Filter(only=frozenset())) == {}
    assert two.known(["0"], None) == {"0": Pick(relevant=(9,), likely=())}
    two.keep(picks, None)
    assert len(store) == 5


def with_functions(body: dict[str, Any]) -> dict[str, Any]:
    """The body with functions alone, and an answer that is not kept."""
    tools = [{"type": "function", "function": tool["custom"]} if "custom" in tool else tool for tool in body["tools"]]
    choice = body.get("tool_choice")
    body = {key: value for key, value in body.items() if key != "tool_choice" or isinstance(choice, str)}
    return body | {"tools": tools} | ({"store": False} if "input" in body else {})


def others(text: bytes) -> list[tuple[str, bytes]]:
    """The fields that neither tools nor the conversation stand in, as they are written."""
    return [(key, text[each.start : each.end]) for key, each in members(text).items() if key not in MENDED]
