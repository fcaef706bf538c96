"""Requests are read whatever they hold, and what cannot be read is one error."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_bodies import CODECS, FORMATS, PATH, asking, called, parsed
from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.json_spans import Edit, Span, cut, elements, members, splice
from pegboard.gateways.llm.formats.registry import codec_for
from pegboard.model import Message, Part
from pegboard.retrieval import QUERIES

formats = pytest.mark.parametrize("name", FORMATS)
ASK = "Renew my books, please"
SYSTEM = Message(role="system", parts=(Part(text="You run the library's desk."),))
CALL = Part(kind="tool_call", tool="list_loans")
RESULT = "Weather of the Alps"


@formats
def test_a_recorded_request_is_read_as_a_conversation_of_roles_and_parts(name: str, data: Path) -> None:
    request = CODECS[name].parse((data / "llm" / f"{name}.json").read_bytes(), PATH)

    roles = [message.role for message in request.turn.messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert request.turn.messages[1].text == ASK
    assert CALL in request.turn.messages[2].parts
    assert all(part.kind == "tool_result" for part in request.turn.messages[3].parts)
    assert RESULT in request.turn.messages[3].parts[0].text
    assert request.called == {"list_loans"}
    assert request.model == "some-model"
    assert [tool.name for tool in request.tools if not tool.hosted][:2] == ["renew_loan", "list_loans"]


@pytest.mark.requirement("P1")
@formats
def test_the_query_of_a_recorded_agent_loop_is_what_the_user_asked(name: str, data: Path) -> None:
    request = CODECS[name].parse((data / "llm" / f"{name}.json").read_bytes(), PATH)

    assert QUERIES["conversation"](request.turn) == ASK


@pytest.mark.requirement("P2")
@formats
def test_the_parts_of_a_message_that_are_text_are_its_text(name: str) -> None:
    body = asking(name)
    if name == "gemini":
        body["contents"].append({"parts": [{"inline_data": {"mime_type": "image/png", "data": "aGk="}}]})
    else:
        image = {"type": {"openai_responses": "input_image", "anthropic": "image"}.get(name, "image_url")}
        body["input" if name == "openai_responses" else "messages"].append({"role": "user", "content": [image]})

    request = parsed(name, body)

    assert [part.kind for part in request.turn.messages[-1].parts][:1] in (["image"], ["file"])
    assert QUERIES["conversation"](request.turn) == "Hello"


@pytest.mark.requirement("P1")
def test_what_the_user_says_beside_a_tools_result_is_the_users() -> None:
    body = asking("anthropic")
    *_, answer = called("anthropic", "alpha", "a result about penguins")
    answer["content"].append({"type": "text", "text": "Now renew the third book as well, please"})
    body["messages"].append(answer)

    request = parsed("anthropic", body)

    assert [message.role for message in request.turn.messages] == ["user", "tool", "user"]
    assert QUERIES["conversation"](request.turn) == "Now renew the third book as well, please"


@pytest.mark.requirement("P4")
@formats
@pytest.mark.parametrize("said", [None, [], "", {}, 7, [None], [[]], [{}], [{"role": 7, "content": 7, "parts": 7}]])
def test_a_conversation_that_is_none_breaks_nothing(name: str, said: Any) -> None:
    field = {"openai_responses": "input", "gemini": "contents"}.get(name, "messages")

    request = parsed(name, asking(name) | {field: said})

    assert QUERIES["conversation"](request.turn) == ""


@pytest.mark.requirement("P6")
@formats
def test_a_pasted_log_costs_bounded_work(name: str) -> None:
    request = parsed(name, asking(name, "Why did it fail?\n" + "DEBUG heartbeat\n" * 100_000))

    assert len(QUERIES["conversation"](request.turn)) < 5000


BROKEN = {
    "no JSON": b"Hello",
    "empty": b"",
    "no object": b"[1]",
    "cut off": b'{"tools": [{"name": "x"',
    "invalid UTF-8": b'{"contents": [{"parts": [{"text": "\xff"}]}], "model": "\xff"}',
    "two documents": b"{} {}",
    "not a number": b'{"tools": [], "x": NaN}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "a key twice": b'{"tools": [], "model": "a", "tools": []}',
    "a key twice, alike": b'{"model": "a", "model": "a"}',
    "tools of a wrong type": b'{"tools": 7}',
    "a tool of a wrong type": b'{"tools": [7]}',
    "a name of a wrong type": b'{"tools": [{"type": "function", "name": 7, "functionDeclarations": [{"name": 7}]}]}',
    "a tool without a name": b'{"tools": [{"functionDeclarations": [{}]}, {"description": "x"}]}',
    "deep": b'{"tools": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep messages": b'{"messages": ' + b'[{"a":' * 5000 + b"1" + b"}]" * 5000 + b"}",
    "a huge number": b'{"contents": [{"parts": ' + b"9" * 10_000 + b'}], "model": ' + b"9" * 10_000 + b"}",
}  # fmt: skip


@formats
@pytest.mark.parametrize("kind", BROKEN)
def test_a_body_that_is_not_what_its_format_says_is_not_understood(name: str, kind: str) -> None:
    with pytest.raises(RequestNotUnderstood) as caught:
        CODECS[name].parse(BROKEN[kind], PATH)

    assert caught.value.remedy


@formats
def test_fifty_megabytes_are_read_in_bounded_time(name: str) -> None:
    body = asking(name, "x" * 50_000_000)
    text = json.dumps(body).encode()

    started = time.monotonic()
    request = CODECS[name].parse(text, PATH)
    CODECS[name].rewrite(request, (0,))

    assert time.monotonic() - started < 10


@formats
def test_ten_thousand_tools_are_read_and_rewritten_in_bounded_time(name: str) -> None:
    text = json.dumps(asking(name, tools=[f"tool_{number}" for number in range(10_000)])).encode()

    started = time.process_time()
    request = CODECS[name].parse(text, PATH)
    out = CODECS[name].rewrite(request, range(0, 10_000, 2))

    assert len(CODECS[name].parse(out, PATH).tools) == 5000
    assert time.process_time() - started < 10


@formats
@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [' + b"{}," * 1_500_000 + b"{}]}",
        b"{" + b",".join(b'"%d":1' % number for number in range(30_000)) + b"}",
        json.dumps({"tools": [{"type": "function", "name": "x"}] * 30_000}).encode(),
    ],
    ids=["values", "members", "tools"],
)
def test_a_body_of_more_than_any_request_has_is_not_read(name: str, body: bytes) -> None:
    with pytest.raises(RequestNotUnderstood):
        CODECS[name].parse(body, PATH)


@pytest.mark.requirement("P23")
@formats
def test_half_a_character_which_clients_do_send_changes_nothing_else(name: str) -> None:
    body = json.dumps(asking(name, "Cut in the middle of an emoji: \ud83e")).encode()

    request = CODECS[name].parse(body, PATH)

    assert request.turn.messages[-1].text == "Cut in the middle of an emoji: \ufffd"
    assert CODECS[name].rewrite(request, range(len(request.tools))) == body
    assert b"\\ud83e" in CODECS[name].rewrite(request, (1,))


@pytest.mark.parametrize(
    ("path", "codec"),
    [
        ("/v1/chat/completions", "openai_chat"),
        ("/openai/deployments/x/chat/completions", "openai_chat"),
        ("/v1/responses", "openai_responses"),
        ("/v1/messages", "anthropic"),
        ("/v1/messages/count_tokens", "anthropic"),
        ("/v1beta/models/gemini-x:generateContent", "gemini"),
        ("/v1beta/models/gemini-x:streamGenerateContent", "gemini"),
        ("/v1/projects/p/locations/l/publishers/google/models/gemini-x:generateContent", "gemini"),
        ("/v1/embeddings", None),
        ("/v1/messages/batches", None),
        ("/v1/responses/resp_1", None),
        ("/v1beta/models/gemini-x:countTokens", "gemini"),
        ("/v1/responses/input_tokens", "openai_responses"),
    ],
)
def test_the_path_says_which_format_a_body_has(path: str, codec: str | None) -> None:
    found = codec_for(path)

    assert (found and found.name) == codec


def test_what_streams_and_which_model_is_known() -> None:
    gemini = CODECS["gemini"].parse(b'{"contents": []}', "/v1beta/models/gemini-x:streamGenerateContent")

    assert (gemini.model, gemini.streams) == ("gemini-x", True)
    assert parsed("openai_chat", asking("openai_chat", stream=True)).streams


@given(
    keep=st.lists(st.booleans(), max_size=8),
    blanks=st.lists(st.sampled_from(["", " ", "\n\t"]), min_size=9, max_size=9),
)
def test_what_is_cut_out_of_an_array_or_an_object_leaves_valid_json(keep: list[bool], blanks: list[str]) -> None:
    array = f"[{','.join(f'{blanks[at]}{at}{blanks[-1]}' for at in range(len(keep)))}]".encode()
    pairs = [f'{blanks[at]}"{at}"{blanks[-1]}:{at}' for at in range(len(keep))]
    object_ = f"{{{','.join(pairs)}}}".encode()

    out = splice(array, cut(elements(array, Span(0, len(array))), keep))
    rest = splice(object_, cut(list(members(object_).values()), keep))

    assert json.loads(out) == [at for at, kept in enumerate(keep) if kept]
    assert json.loads(rest) == {str(at): at for at, kept in enumerate(keep) if kept}


def test_edits_are_made_in_their_order_whatever_order_they_come_in() -> None:
    assert splice(b"abcdef", [Edit(4, 5, b"E"), Edit(0, 1), Edit(2, 2, b"-")]) == b"b-cdEf"
