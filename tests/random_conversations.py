"""Random conversations with an agent, and their requests in each wire format whose providers keep nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from mock_providers.scripted import SCRIPTED, STREAMS, Calls, Says
from more_provider_bodies import CONVERSE, POINT, Call, answer_of_cohere, answer_of_converse

JOBS: Mapping[str, str] = {
    "renew_loan": "Extend the due date of a borrowed book",
    "weather_forecast": "Weather of the coming days at a place",
    "convert_currency": "Convert an amount of money into another currency",
    "water_plants": "Open the valve of one garden bed",
    "search_tools": "Find the tools of the workshop",
    **{f"unit_{number}": f"Read sensor {number} of engine {number}" for number in range(12)},
}
"""One has the name that our search has where nobody else has it."""
SCHEMA = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "gemini": "/v1beta/models/{}:generateContent",
    "bedrock": CONVERSE,
    "cohere": "/v2/chat",
}
FORMATS = tuple(PATHS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStep:
    """An answer with calls, whose results follow."""

    text: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UserTurn:
    """What the user says, the steps of the agent, and its last words, if it has ended."""

    said: str
    steps: tuple[AgentStep, ...]
    end: str


texts = st.sampled_from([*(f"{said}, please" for said in JOBS.values()), "Hello", "größe 你好 \u2028", "and in Oslo?"])
calls = st.tuples(
    st.sampled_from([*JOBS, "gone_since"]), st.dictionaries(st.just("what"), st.sampled_from(["it", 'the "Zoë"', ""]))
)
steps = st.builds(
    AgentStep,
    text=st.sampled_from(["", "Let me see."]),
    calls=st.lists(calls, min_size=1, max_size=3, unique_by=lambda call: call[0]).map(tuple),
)
turns = st.builds(
    UserTurn, said=texts, steps=st.lists(steps, max_size=2).map(tuple), end=st.sampled_from(["Done.", "Here: ✓"])
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[UserTurn, ...]:
    """One that waits for an answer: after the user's words, or after results."""
    begun = draw(st.lists(turns, max_size=3))
    last = draw(st.builds(UserTurn, said=texts, steps=st.lists(steps, max_size=2).map(tuple), end=st.just("")))
    return (*begun, last)


def body(name: str, model: str, talk: Sequence[UserTurn], *, system: bool) -> dict[str, Any]:
    """The request, with all jobs as tools."""
    messages = list(_messages(name, talk))
    match name:
        case "openai_chat":
            before = [{"role": "system", "content": "Be kind."}] if system else []
            return {"model": model, "messages": [*before, *messages], "tools": _functions()}
        case "cohere":
            before = [{"role": "system", "content": "Be kind."}] if system else []
            return {"model": model, "messages": [*before, *messages], "tools": _functions()}
        case "gemini":
            declared = [{"name": job, "description": said, "parameters": SCHEMA} for job, said in JOBS.items()]
            more = {"systemInstruction": {"parts": [{"text": "Be kind."}]}} if system else {}
            return {**more, "contents": messages, "tools": [{"functionDeclarations": declared}]}
        case _:
            specified = [
                {"toolSpec": {"name": job, "description": said, "inputSchema": {"json": SCHEMA}}}
                for job, said in JOBS.items()
            ]
            more = {"system": [{"text": "Be kind."}, POINT]} if system else {}
            return {**more, "messages": messages, "toolConfig": {"tools": [*specified, *([POINT] if system else [])]}}


def answer(name: str, made: Sequence[Call], number: int) -> dict[str, Any]:
    """The provider's answer with these calls, not streamed."""
    if name == "bedrock":
        return answer_of_converse(made, "Hm.", 90 + number)
    if name == "cohere":
        return answer_of_cohere(made, "Hm.", 90 + number)
    says = Says(text="Hm.", calls=[Calls(tool=tool, arguments=given) for tool, given in made])
    asked = {"messages": [], "contents": [], "tools": [], STREAMS: False}
    found = SCRIPTED[name](lambda _: says, asked, f"a_{number}").document
    assert found is not None
    return dict(found)


def _functions() -> list[dict[str, Any]]:
    described = [{"name": job, "description": said, "parameters": SCHEMA} for job, said in JOBS.items()]
    return [{"type": "function", "function": each} for each in described]


def _messages(name: str, talk: Sequence[UserTurn]) -> Iterator[dict[str, Any]]:
    for number, turn in enumerate(talk):
        yield _spoken(name, "user", turn.said)
        for place, step in enumerate(turn.steps):
            ids = [f"c{number}_{place}_{at}" for at in range(len(step.calls))]
            yield _called(name, step, ids)
            yield from _results(name, step, ids)
        if turn.end:
            yield _spoken(name, "assistant", turn.end)


def _spoken(name: str, role: str, text: str) -> dict[str, Any]:
    if name == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": [{"text": text}] if name == "bedrock" else text}


def _called(name: str, step: AgentStep, ids: Sequence[str]) -> dict[str, Any]:
    said = [{"text": step.text}] if step.text else []
    if name == "gemini":
        return {"role": "model", "parts": [*said, *({"functionCall": {"name": t, "args": a}} for t, a in step.calls)]}
    if name == "bedrock":
        uses = [
            {"toolUse": {"toolUseId": id_, "name": tool, "input": given}}
            for id_, (tool, given) in zip(ids, step.calls, strict=True)
        ]
        return {"role": "assistant", "content": [*said, *uses]}
    made = [
        {"id": id_, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        for id_, (tool, given) in zip(ids, step.calls, strict=True)
    ]
    text = {"tool_plan" if name == "cohere" else "content": step.text} if step.text else {}
    return {"role": "assistant", "tool_calls": made} | text


def _results(name: str, step: AgentStep, ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    if name == "gemini":
        named = [tool for tool, _ in step.calls]
        yield {
            "role": "user",
            "parts": [{"functionResponse": {"name": t, "response": {"result": "ok"}}} for t in named],
        }
    elif name == "bedrock":
        yield {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": id_, "content": [{"text": "ok"}]}} for id_ in ids],
        }
    else:
        yield from ({"role": "tool", "tool_call_id": id_, "content": "ok"} for id_ in ids)
