from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import Call, Decision, ToolId
from pegboard.errors import ArgumentsInvalid, ToolNotAvailable
from pegboard.model import JsonObject, Session, Tokens
from pegboard.routing import check_arguments_now, check_available, matches_output_schema
from pegboard.testing import fake_tool

RENEW, SEARCH, MAPS = ToolId("library", "renew"), ToolId("library", "search"), ToolId("maps", "search")


def decision(active: list[ToolId], reachable: list[ToolId] | None = None) -> Decision:
    return Decision(
        turn_id="t",
        profile="attention",
        query="q",
        scale="cosine",
        active=tuple(active),
        candidates=(),
        reachable=frozenset(reachable or active),
        gated_out_by_state=(),
        phase1="",
        phase1_tokens=Tokens(0),
        phase2=(),
        phase2_tokens=Tokens(0),
        session=Session(),
        latency_ms=0,
    )


@pytest.mark.requirement("000.hallucination-gate", "000.alg1")
def test_a_call_outside_the_active_set_is_rejected_in_the_seeds_shape() -> None:
    turn = decision([RENEW], reachable=[RENEW, MAPS])

    with pytest.raises(ToolNotAvailable) as caught:
        check_available(Call(name="search"), turn)

    payload = caught.value.payload()
    assert payload["error"] == "tool_not_available"
    assert payload["available"] == ["renew"]


@pytest.mark.requirement("000.hallucination-gate")
def test_a_call_of_an_active_tool_passes() -> None:
    assert check_available(Call(name="renew"), decision([RENEW, MAPS])) == RENEW


@pytest.mark.requirement("M24")
def test_a_reachable_tool_may_be_called_where_the_gate_is_the_wider_one() -> None:
    turn = decision([RENEW], reachable=[RENEW, MAPS])

    assert check_available(Call(name="search"), turn, "reachable") == MAPS
    with pytest.raises(ToolNotAvailable):
        check_available(Call(name="fly"), turn, "reachable")


@pytest.mark.requirement("M11")
def test_a_name_of_two_tools_needs_its_server_and_the_answer_says_so() -> None:
    turn = decision([SEARCH, MAPS])

    with pytest.raises(ToolNotAvailable) as caught:
        check_available(Call(name="search"), turn)

    assert caught.value.available == ("library/search", "maps/search")
    assert "server/name" in caught.value.remedy
    assert check_available(Call(name="maps/search"), turn) == MAPS


def test_the_answer_to_an_unknown_name_lists_a_bounded_number_of_tools() -> None:
    with pytest.raises(ToolNotAvailable) as caught:
        check_available(Call(name="fly"), decision([ToolId("s", f"tool_{number}") for number in range(500)]))

    assert len(caught.value.available) == 20


def test_where_nothing_is_active_nothing_is_offered() -> None:
    with pytest.raises(ToolNotAvailable) as caught:
        check_available(Call(name="fly"), decision([]))

    assert caught.value.available == ()


@given(name=st.text(max_size=20))
def test_no_name_breaks_the_gate(name: str) -> None:
    turn = decision([SEARCH, MAPS, RENEW])
    with suppress(ToolNotAvailable):
        found = check_available(Call(name=name), turn)
        assert name in (found.name, str(found))


TICKET = fake_tool(
    "create_issue",
    schema={
        "type": "object",
        "properties": {
            "project": {"type": "string"},
            "priority": {"enum": ["low", "urgent"]},
            "labels": {"type": "array", "items": {"$ref": "#/$defs/label"}},
        },
        "required": ["project"],
        "$defs": {"label": {"type": "string", "maxLength": 3}},
    },
)


def test_arguments_that_fit_pass() -> None:
    check_arguments_now(TICKET, {"project": "Atlas", "priority": "low", "labels": ["ui"], "unknown": 1})


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "'project' is a required property"),
        ({"project": 7}, "project: 7 is not of type 'string'"),
        ({"project": "Atlas", "priority": "now"}, "priority: 'now' is not one of"),
        ({"project": "Atlas", "labels": ["ui", "long"]}, "labels/1: 'long' is too long"),
    ],
)
def test_arguments_that_do_not_fit_are_rejected_with_the_place_and_the_reason(
    arguments: dict[str, object], problem: str
) -> None:
    with pytest.raises(ArgumentsInvalid) as caught:
        check_arguments_now(TICKET, arguments)

    assert any(each.startswith(problem) for each in caught.value.problems)
    assert caught.value.schema is TICKET.input_schema


def test_the_number_of_problems_told_is_bounded() -> None:
    tool = fake_tool("x", schema={"additionalProperties": {"type": "string"}})

    with pytest.raises(ArgumentsInvalid) as caught:
        check_arguments_now(tool, {f"field {number}": number for number in range(100)})

    assert len(caught.value.problems) == 8


@pytest.mark.parametrize("schema", [{}, None])
def test_a_tool_without_a_schema_takes_any_arguments(schema: dict[str, object] | None) -> None:
    check_arguments_now(fake_tool("x", schema=schema), {"anything": [1]})


def test_an_older_dialect_is_read_as_what_it_says_it_is() -> None:
    """`items` as a list means places in draft 7, and is no schema at all in 2020-12."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"pair": {"items": [{"type": "string"}, {"type": "number"}]}},
    }

    check_arguments_now(fake_tool("x", schema=schema), {"pair": ["a", 1]})
    with pytest.raises(ArgumentsInvalid, match="pair/1"):
        check_arguments_now(fake_tool("x", schema=schema), {"pair": ["a", "b"]})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "banana"}}},
        {"properties": {"a": {"pattern": r"^\p{L}+$"}}},
        {"properties": {"a": {"pattern": "(["}}},
        {"properties": {"a": 5}},
        {"properties": []},
        {"required": 5},
        {"type": 5},
        {"$schema": 5},
        {"$schema": "https://example.org/no-such-dialect", "type": 5},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"properties": {"n": {"multipleOf": 0}}},
        {"properties": {"a": {"minLength": "x"}}},
    ],
    ids=str,
)
def test_a_schema_that_cannot_judge_lets_the_call_pass(schema: dict[str, object]) -> None:
    """Servers in the field send such schemas, some of them good ones in another regular expression dialect."""
    check_arguments_now(fake_tool("x", schema=schema), {"a": "x", "n": 3})


KEYWORDS = ["type", "properties", "required", "enum", "items", "pattern", "$ref", "anyOf", "not", "minimum", "const"]
schemas = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["string", "object", "#", "a", "(["]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*KEYWORDS, "a"]), inner, max_size=3),
    max_leaves=6,
)


@given(schema=st.dictionaries(st.sampled_from(KEYWORDS), schemas, max_size=3), value=schemas)
def test_no_schema_breaks_the_check(schema: dict[str, object], value: object) -> None:
    with suppress(ArgumentsInvalid):
        check_arguments_now(fake_tool("x", schema=schema), {"a": value})


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """Notes who asks it for a schema."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.server.asked.append(self.path)  # type: ignore[attr-defined]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"type": "string"}')

        def log_message(self, *_args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


@pytest.mark.requirement("design.local-references")
def test_a_schema_cannot_make_us_fetch_anything(server: HTTPServer, tmp_path: Path) -> None:
    """A server's schema with a `$ref` to an address inside our network must not be followed."""
    local = tmp_path / "schema.json"
    local.write_text('{"type": "string"}')
    for reference in (f"http://127.0.0.1:{server.server_port}/secret", local.as_uri()):
        check_arguments_now(fake_tool("x", schema={"properties": {"a": {"$ref": reference}}}), {"a": 5})

    assert server.asked == []  # type: ignore[attr-defined]


PROMISE = {"type": "object", "properties": {"due": {"type": "string"}}, "required": ["due"]}


@pytest.mark.parametrize(
    ("promised", "result", "kept"),
    [
        (PROMISE, {"content": [], "structuredContent": {"due": "Monday"}}, True),
        (PROMISE, {"content": [], "structuredContent": {"due": 7}}, False),
        (PROMISE, {"content": [], "structuredContent": None}, False),
        (PROMISE, {"content": []}, False),
        (None, {"content": []}, True),
        (None, {"content": [], "structuredContent": {"due": 7}}, True),
        ({"type": "no such type"}, {"content": [], "structuredContent": {}}, True),
    ],
)
async def test_a_result_is_held_against_what_the_tool_promises(
    promised: JsonObject | None, result: JsonObject, kept: bool
) -> None:
    tool = replace(fake_tool("renew", "Renew a loan", server="library"), output_schema=promised)

    assert await matches_output_schema(tool, result) is kept
