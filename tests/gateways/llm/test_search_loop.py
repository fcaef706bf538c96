"""Rounds of one request, without any network: what the client gets of answers that are not as they should be."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.types import Message

from mock_providers.scripted import SCRIPTED, STREAMS, Calls, Says
from mock_providers.wire import event_bytes
from model_bodies import CODECS, PATH, TOOL_SEARCH, asking
from pegboard.errors import EncoderError
from pegboard.gateways.llm.formats.tool_search import SearchTool
from pegboard.gateways.llm.proxy.http_bodies import ResponseWriter
from pegboard.gateways.llm.proxy.model_upstream import Answer, Headers
from pegboard.gateways.llm.selection.policy_rules import Policies
from pegboard.gateways.llm.tool_search.round_trip import ToolSearchRoundTrip, ToolSearchTerms
from pegboard.gateways.llm.tool_search.search_loop import ToolSearchLoop
from pegboard.model import Tool
from pegboard.settings.llm import LlmSettings
from pegboard.testing import fake_tool

SEARCH = Says(calls=[Calls(tool="search_tools", arguments={"query": "beta"})])
TEXT = Says(text="Done.")
JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")

formats = pytest.mark.parametrize("name", TOOL_SEARCH)


@dataclass
class Client:
    """What it gets."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    async def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        self.body += message.get("body", b"")


@dataclass
class Provider:
    """Answers with these, one after the other, and keeps what it was asked; ``before_last`` is called before the last
    piece of each."""

    answers: Sequence[tuple[int, Headers, bytes]]
    asked: list[Any] = field(default_factory=list)
    before_last: Callable[[], Any] = lambda: None

    @asynccontextmanager
    async def send(self, body: bytes) -> AsyncIterator[Answer]:
        status, headers, said = self.answers[len(self.asked)]
        self.asked.append(json.loads(body))

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(said), 100):
                if start + 100 >= len(said):
                    self.before_last()
                yield said[start : start + 100]

        yield Answer(status=status, headers=headers, pieces=pieces())


def whole(name: str, says: Says, number: int = 0) -> tuple[int, Headers, bytes]:
    reply = SCRIPTED[name](lambda _: says, asking(name, **{STREAMS: False}), f"answer_{number}")
    return 200, [JSON], json.dumps(reply.document).encode()


def streamed(name: str, says: Says, number: int = 0) -> tuple[int, Headers, bytes]:
    reply = SCRIPTED[name](lambda _: says, asking(name, stream=True, **{STREAMS: True}), f"answer_{number}")
    return 200, [EVENTS], b"".join(event_bytes(*event) for event in reply.events or ())


async def nothing_found(_query: str, _among: Collection[int]) -> dict[int, Tool]:
    return {}


async def found(_query: str, _among: Collection[int]) -> dict[int, Tool]:
    return {1: fake_tool("beta")}


def way_of(name: str, **more: Any) -> ToolSearchRoundTrip:
    body = json.dumps(asking(name, store=False)).encode()
    options = {
        "open": frozenset(range(4)),
        "hidden_call": "ask",
        "tool": SearchTool(name="search_tools", description="Find"),
        "find": found,
    }
    request = CODECS[name].parse(body, PATH)
    return ToolSearchRoundTrip(
        format=TOOL_SEARCH[name], codec=CODECS[name], request=request, kept=frozenset([0]), **(options | more)
    )


async def client_of(provider: Provider, way: ToolSearchRoundTrip) -> Client:
    client = Client()
    gateway_headers = [(b"x-pegboard-filter", b"filtered")]
    await ToolSearchLoop(
        round_trip=way,
        codec=CODECS[way.codec.name],
        send=provider.send,
        writer=ResponseWriter(client.take),
        gateway_headers=gateway_headers,
    ).run()
    return client


@formats
async def test_an_error_of_the_first_answer_passes_as_it_came(name: str) -> None:
    provider = Provider([(429, [JSON, (b"retry-after", b"7")], b'{"error": {"message": "slow down"}}')])

    client = await client_of(provider, way_of(name))

    assert (client.status, client.body) == (429, b'{"error": {"message": "slow down"}}')
    assert client.headers["retry-after"] == "7"


@formats
async def test_an_error_after_a_search_is_the_answer_where_nothing_was_said_yet(name: str) -> None:
    provider = Provider([whole(name, SEARCH), (529, [JSON], b'{"error": {"message": "overloaded"}}')])

    client = await client_of(provider, way_of(name))

    assert (client.status, client.body) == (529, b'{"error": {"message": "overloaded"}}')
    assert client.headers["x-pegboard-searches"] == "1"


@formats
async def test_an_error_after_a_search_ends_a_stream_with_an_event_that_says_so(name: str) -> None:
    provider = Provider([streamed(name, SEARCH), (529, [JSON], b'{"error": {"message": "overloaded"}}')])

    client = await client_of(provider, way_of(name))

    assert client.status == 200
    assert b"overloaded" in client.body
    assert b"search_tools" not in client.body


@pytest.mark.requirement("P27")
@formats
async def test_text_reaches_the_client_before_the_provider_has_said_it_all(name: str) -> None:
    client = Client()
    said = streamed(name, Says(text="Let me look for that.", calls=SEARCH.calls))
    reached: list[bool] = []
    provider = Provider([said, streamed(name, TEXT, 1)], before_last=lambda: reached.append(b"that." in client.body))

    way = way_of(name)
    await ToolSearchLoop(
        round_trip=way,
        codec=CODECS[way.codec.name],
        send=provider.send,
        writer=ResponseWriter(client.take),
        gateway_headers=[],
    ).run()

    assert reached[0]
    assert len(provider.asked) == 2
    assert b"search_tools" not in client.body


@formats
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_an_answer_that_is_compressed_in_spite_of_all_is_read(name: str, coding: str) -> None:
    def packed(answer: tuple[int, Headers, bytes]) -> tuple[int, Headers, bytes]:
        packer = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
        headers = [*answer[1], (b"content-encoding", coding.encode()), (b"content-length", b"1")]
        return answer[0], headers, packer.compress(answer[2]) + packer.flush()

    provider = Provider([packed(whole(name, SEARCH)), packed(whole(name, TEXT, 1))])

    client = await client_of(provider, way_of(name))

    assert b"Done." in client.body
    assert b"search_tools" not in client.body
    assert "content-encoding" not in client.headers
    assert client.headers["content-length"] == str(len(client.body))


@pytest.mark.requirement("P27")
@formats
async def test_an_answer_that_calls_nothing_of_ours_is_byte_for_byte_what_came(name: str) -> None:
    _, headers, said = whole(name, TEXT)
    said = said.replace(b": ", b" :  ")
    if name == "openai_responses":  # it repeats the tools, of which one is ours
        said = json.dumps(json.loads(said) | {"tools": []}).encode()
    client = await client_of(Provider([(200, headers, said)]), way_of(name))

    assert client.body == said
    assert client.headers["x-pegboard-searches"] == "0"


@formats
@pytest.mark.parametrize("said", [b"", b"null", b"[]", b"{}", b"no JSON", b'{"choices": 1, "output": 1, "content": 1}'])
async def test_an_answer_that_nobody_understands_passes(name: str, said: bytes) -> None:
    client = await client_of(Provider([(200, [JSON], said)]), way_of(name))

    assert client.body == said


@formats
async def test_a_search_that_fails_says_so_to_the_model_and_the_client_gets_its_answer(name: str) -> None:
    async def failing(_query: str, _among: Collection[int]) -> dict[int, Tool]:
        raise EncoderError("It is down.")

    provider = Provider([whole(name, SEARCH), whole(name, TEXT, 1)])

    client = await client_of(provider, way_of(name, find=failing))

    assert b"Done." in client.body
    assert "search failed" in json.dumps(provider.asked[1])


@formats
async def test_where_nothing_is_found_and_no_tool_is_left_all_come_back_the_last_time(name: str) -> None:
    provider = Provider([*(whole(name, SEARCH, number) for number in range(3)), whole(name, TEXT, 3)])
    way = way_of(name, find=nothing_found)
    way.kept = frozenset()

    await client_of(provider, way)

    offered = [
        [tool.name for tool in CODECS[name].parse(json.dumps(body).encode(), PATH).tools] for body in provider.asked
    ]
    assert offered == [["search_tools"]] * 3 + [["alpha", "beta", "gamma", "delta"]]


@formats
async def test_a_search_for_nothing_is_answered_without_looking(name: str) -> None:
    async def never(_query: str, _among: Collection[int]) -> dict[int, Tool]:
        raise AssertionError

    provider = Provider([whole(name, Says(calls=[Calls(tool="search_tools")])), whole(name, TEXT, 1)])

    await client_of(provider, way_of(name, find=never))

    assert "Describe in the query" in json.dumps(provider.asked[1])


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("openai_chat", {"finish_reason": "length"}),
        ("openai_responses", {"status": "incomplete"}),
        ("anthropic", {"stop_reason": "max_tokens"}),
        ("gemini", {"finishReason": "MAX_TOKENS"}),
    ],
)
async def test_a_search_that_was_cut_off_is_not_answered(name: str, cut: dict[str, str]) -> None:
    status, headers, said = whole(name, SEARCH)
    document = json.loads(said)
    (document.get("choices") or document.get("candidates") or [document])[0].update(cut)

    client = await client_of(Provider([(status, headers, json.dumps(document).encode())]), way_of(name))

    assert next(iter(cut.values())).encode() in client.body
    assert b"search_tools" not in json.dumps(json.loads(client.body) | {"tools": []}).encode()


@formats
async def test_a_call_of_a_tool_that_is_never_to_come_back_is_refused(name: str) -> None:
    provider = Provider([whole(name, Says(calls=[Calls(tool="delta")])), whole(name, TEXT, 1)])
    way = way_of(name, open=frozenset([0, 1]))

    client = await client_of(provider, way)

    assert b"Done." in client.body
    assert "tool_not_available" in json.dumps(provider.asked[1])
    assert way.found == []


@formats
async def test_what_a_search_does_that_nobody_expected_is_no_end_of_the_answer(name: str) -> None:
    async def broken(_query: str, _among: Collection[int]) -> dict[int, Tool]:
        raise ZeroDivisionError

    provider = Provider([whole(name, SEARCH), whole(name, TEXT, 1)])

    client = await client_of(provider, way_of(name, find=broken))

    assert b"Done." in client.body


@formats
@pytest.mark.parametrize("answers", [whole, streamed])
async def test_without_a_search_tool_calls_of_hidden_tools_are_caught_all_the_same(name: str, answers: Any) -> None:
    call = Says(calls=[Calls(tool="beta", arguments={"x": 1})])
    provider = Provider([answers(name, call), answers(name, call, 1)])

    client = await client_of(provider, way_of(name, tool=None))

    first, second = (CODECS[name].parse(json.dumps(body).encode(), PATH) for body in provider.asked)
    assert [tool.name for tool in first.tools] == ["alpha"]
    assert [tool.name for tool in second.tools] == ["alpha", "beta"]
    assert b"beta" in client.body


@pytest.mark.parametrize(
    ("said", "terms"),
    [
        ({}, ToolSearchTerms(offered=True, hidden_call="ask", search_tokens=600)),
        ({"way_back": False}, ToolSearchTerms(offered=False, hidden_call="pass", search_tokens=600)),
        ({"way_back": True}, ToolSearchTerms(offered=True, hidden_call="ask", search_tokens=600)),
        (
            {"way_back": True, "hidden_call": "pass"},
            ToolSearchTerms(offered=True, hidden_call="pass", search_tokens=600),
        ),
        (
            {"way_back": False, "hidden_call": "guard"},
            ToolSearchTerms(offered=False, hidden_call="guard", search_tokens=600),
        ),
        ({"way_back": True, "search_tokens": 0}, ToolSearchTerms(offered=True, hidden_call="ask", search_tokens=0)),
    ],
)
def test_a_way_back_is_there_by_default_and_catches_hidden_calls_too(
    said: dict[str, Any], terms: ToolSearchTerms
) -> None:
    policies = Policies(LlmSettings(policy=said))

    assert policies.of("openai", "m", None, {}).tool_search == terms
    assert not policies.of("openai", "m", None, {"way-back": "off"}).tool_search.any
