from __future__ import annotations

import json

import pytest

from pegboard.errors import (
    HELD_BACK,
    ArgumentsInvalid,
    CatalogError,
    ConfigError,
    EncoderError,
    NotApproved,
    PegboardError,
    RequestNotUnderstood,
    SessionConflict,
    SpendLimitReached,
    StoreError,
    ToolNotAvailable,
    UpstreamError,
)
from pegboard.spend_limits import NanoUsd

ALL = [
    ConfigError("The port is 'x'.", remedy="Use a number."),
    CatalogError("No tools.", remedy="Check the file."),
    EncoderError("The model is missing.", remedy="Install again."),
    UpstreamError("weather", "It hung up.", remedy="Start it again."),
    SessionConflict(),
    SpendLimitReached("day", limit=NanoUsd(2), used=NanoUsd(1), amount=NanoUsd(5)),
    StoreError("It is down.", remedy="Start it."),
    RequestNotUnderstood("It is no JSON.", remedy="Check its format."),
    ToolNotAvailable("fly", ["walk", "swim"], remedy="Walk."),
    *(NotApproved("zoo/fly", why) for why in HELD_BACK),
    ArgumentsInvalid("walk", ["'far' is not a number"], {"type": "object"}),
]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_every_error_says_what_was_wrong_and_what_to_do(error: PegboardError) -> None:
    assert str(error) == f"{error.message} {error.remedy}"
    assert error.remedy


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_one_except_clause_catches_every_error(error: PegboardError) -> None:
    assert isinstance(error, PegboardError)


@pytest.mark.requirement("M8", "mcp.is-error")
@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_an_error_becomes_a_tool_result_that_says_it_is_one(error: PegboardError) -> None:
    result = error.to_mcp()

    assert result["isError"] is True
    assert [part["type"] for part in result["content"]] == ["text"]
    assert json.loads(result["content"][0]["text"]) == error.payload()


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_an_error_becomes_a_status_code_and_a_json_body(error: PegboardError) -> None:
    status, body = error.to_http()

    assert 400 <= status < 600
    assert json.loads(json.dumps(body))["error"] == error.code


@pytest.mark.requirement("000.hallucination-gate")
def test_the_hallucination_gates_answer_has_the_seeds_shape() -> None:
    payload = ToolNotAvailable("fly", ["walk", "swim"]).payload()

    assert payload["error"] == "tool_not_available"
    assert payload["available"] == ["walk", "swim"]


def test_invalid_arguments_come_back_with_the_problems_and_the_schema() -> None:
    schema = {"type": "object", "required": ["far"]}
    error = ArgumentsInvalid("walk", ["'far' is a required property", "'x' was unexpected"], schema)

    assert error.payload()["problems"] == ["'far' is a required property", "'x' was unexpected"]
    assert error.payload()["inputSchema"] == schema
    assert "'far' is a required property; 'x' was unexpected" in str(error)


def test_an_upstream_error_names_the_server() -> None:
    assert UpstreamError("weather", "It hung up.").payload()["server"] == "weather"


def test_an_error_without_a_remedy_ends_after_its_message() -> None:
    error = PegboardError("Something.")

    assert str(error) == "Something."
    assert "remedy" not in error.payload()
