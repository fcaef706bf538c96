from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from pegboard import Board, model
from pegboard.model import AgentState, Message, Outcome, Part, ToolId, Turn
from pegboard.testing import FakeEncoder, fake_tool


def test_a_tool_is_named_by_its_server_and_its_name() -> None:
    assert str(ToolId("library", "renew_loan")) == "library/renew_loan"
    assert ToolId("library", "search") != ToolId("archive", "search")


def test_a_tool_keeps_its_definition_as_it_arrived() -> None:
    tool = fake_tool("renew_loan", "Extend a loan.", server="library")

    assert (tool.name, tool.server) == ("renew_loan", "library")
    assert json.dumps(tool.definition).startswith('{"name": "renew_loan"')


def test_tools_can_be_put_into_sets_though_their_schemas_cannot_be_hashed() -> None:
    tool = fake_tool("renew_loan", schema={"type": "object", "properties": {"loan": {"type": "string"}}})

    assert tool in {tool}


def test_equal_tools_are_compared_without_a_look_at_each_value(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"properties": {"a": {"default": 0.5, "enum": [1, null, true, "é\\ud800"]}, "b": {"enum": [1, null]}}}'
    one, other = (fake_tool("renew_loan", schema=json.loads(each)) for each in (text, "".join([" ", text])))
    part = {"type": "string"}
    shared, apart = {"properties": {"a": part, "b": part}}, {"properties": {"a": {**part}, "b": {**part}}}
    turned = fake_tool("renew_loan", schema={"properties": dict(reversed(json.loads(text)["properties"].items()))})
    assert one == turned
    proxy = MappingProxyType({"default": 1})
    assert fake_tool("t", schema=proxy) == fake_tool("t", schema={"default": 1})
    assert fake_tool("t", schema=proxy) != fake_tool("t", schema={"default": True})

    monkeypatch.setattr(model, "same_json", None)
    monkeypatch.setattr(model, "repr", None, raising=False)

    assert one == other
    assert fake_tool("t", schema=shared) == fake_tool("t", schema=apart)
    assert one != fake_tool("renew_loan", schema=shared)


@pytest.mark.parametrize("noun", [fake_tool("t"), Turn.ask("hello"), Message(role="user"), Part(text="x")])
def test_nouns_cannot_be_changed(noun: object) -> None:
    field = dataclasses.fields(noun)[0].name  # type: ignore[arg-type]

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(noun, field, None)


@pytest.mark.requirement("P2")
def test_the_text_of_a_message_is_that_of_its_text_parts() -> None:
    message = Message(
        role="user",
        parts=(
            Part(text="Which plant is this?"),
            Part(kind="image"),
            Part(kind="file", text="notes.txt"),
            Part(text=""),
            Part(text="It has blue flowers."),
        ),
    )

    assert message.text == "Which plant is this?\nIt has blue flowers."


def test_a_turn_of_one_question_is_one_user_message() -> None:
    turn = Turn.ask("When is high water?", id="turn-1", scopes=frozenset({"tides"}))

    assert [(message.role, message.text) for message in turn.messages] == [("user", "When is high water?")]
    assert (turn.id, turn.scopes) == ("turn-1", frozenset({"tides"}))


def test_an_outcome_says_whose_fault_a_failure_was() -> None:
    outcome = Outcome(tool=ToolId("weather", "get_tides"), success=False, latency_ms=12.5, failure="caller")

    assert outcome.failure == "caller"


@pytest.mark.requirement("C6")
def test_a_decision_can_be_pickled_copied_and_written_as_json(tmp_path: Path) -> None:
    tools = [fake_tool("renew_loan", "Renew a loan"), fake_tool("renew.loan", "Renew a loan")]
    with Board(tools, encoder=FakeEncoder(), cache_dir=tmp_path, k=1) as board:
        decision = board.route_now("renew my loan", session="ada")

    assert pickle.loads(pickle.dumps(decision)) == decision  # noqa: S301 - it was pickled here
    assert copy.deepcopy(decision) == copy.copy(decision) == decision
    said = json.loads(json.dumps(decision.to_dict()))
    assert set(said) == {field.name for field in dataclasses.fields(decision)}
    assert said["active"] == [str(tool) for tool in decision.active]
    assert said["names"] == {str(tool): name for tool, name in decision.names.items()}


@pytest.mark.parametrize("field", ["scopes", "only"])
def test_rights_of_a_turn_that_are_one_text_are_refused(field: str) -> None:
    """A text contains other texts: a caller with `repo:status` would have `repo`, and `mail/*` is also `*`."""
    with pytest.raises(TypeError, match=f"{field} is the text 'mail/\\*'"):
        Turn.ask("x", **{field: "mail/*"})


@pytest.mark.parametrize("field", ["auth", "tool_outputs", "milestones"])
def test_facts_that_are_one_text_are_refused(field: str) -> None:
    with pytest.raises(TypeError, match=f"{field} is the text"):
        AgentState(**{field: "plan_confirmed"})


@pytest.mark.parametrize("kind", [list, set, iter])
@pytest.mark.parametrize("field", ["auth", "tool_outputs", "milestones"])
def test_facts_may_be_any_collection(kind: Callable[[list[str]], Any], field: str) -> None:
    assert getattr(AgentState(**{field: kind(["mail", "plan"])}), field) == frozenset({"mail", "plan"})


@pytest.mark.parametrize("kind", [list, set, iter])
def test_scopes_may_be_any_collection(kind: Callable[[list[str]], Any]) -> None:
    assert Turn.ask("x", scopes=kind(["mail"])).scopes == frozenset({"mail"})


def test_patterns_of_tools_may_be_a_list() -> None:
    assert Turn.ask("x", only=["mail/*"]).only == ("mail/*",)
