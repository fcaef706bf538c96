"""Conversations as agents keep them: plain JSON, and the objects of SDKs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from google.genai import types as gemini
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseFunctionWebSearch,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from odd_values import spoilt
from pegboard import Board
from pegboard.adapters.call_history import answered_names
from pegboard.errors import ConfigError
from pegboard.library.turns import turn_of
from pegboard.model import Message, Part

ASK = "When is high tide in Bergen?"
ASKED = Message(role="user", parts=(Part(text=ASK),))
CALLED = Message(role="assistant", parts=(Part(kind="tool_call", tool="tide"),))
ANSWERED = Message(role="tool", parts=(Part(kind="tool_result", text="16:20", tool="tide"),))
SAID = Message(role="assistant", parts=(Part(text="At 16:20."),))

RESPONSES = [
    {"role": "user", "content": ASK},
    {"type": "reasoning", "id": "r1", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "tide", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "16:20"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "At 16:20."}]},
]
RESPONSES_OBJECTS = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASK}]},
    ResponseReasoningItem(id="r1", type="reasoning", summary=[]),
    ResponseFunctionToolCall(type="function_call", call_id="c", name="tide", arguments="{}"),
    {"type": "function_call_output", "call_id": "c", "output": "16:20"},
    ResponseOutputMessage(
        id="m",
        type="message",
        role="assistant",
        status="completed",
        content=[ResponseOutputText(type="output_text", text="At 16:20.", annotations=[])],
    ),
]
CHAT = [
    {"role": "user", "content": ASK},
    ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "tide", "arguments": "{}"}}],
        }
    ),
    {"role": "tool", "tool_call_id": "c", "content": "16:20"},
    {"role": "assistant", "content": "At 16:20."},
]
OLD_CHAT = [
    {"role": "user", "content": ASK},
    {"role": "assistant", "content": None, "function_call": {"name": "tide", "arguments": "{}"}},
    {"role": "function", "name": "tide", "content": "16:20"},
    {"role": "assistant", "content": "At 16:20."},
]
LANGCHAIN = [
    HumanMessage(ASK),
    AIMessage("", tool_calls=[{"name": "tide", "args": {}, "id": "c"}]),
    ToolMessage("16:20", tool_call_id="c"),
    AIMessage("At 16:20."),
]

ANTHROPIC = [
    {"role": "user", "content": ASK},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "tide", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "16:20"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "At 16:20."}]},
]
BEDROCK = [
    {"role": "user", "content": [{"text": ASK}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "tide", "input": {}}}]},
    {"role": "user", "content": [{"toolResult": {"toolUseId": "c", "content": [{"text": "16:20"}]}}]},
    {"role": "assistant", "content": [{"text": "At 16:20."}]},
]


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "said",
    [RESPONSES, RESPONSES_OBJECTS, CHAT, OLD_CHAT, LANGCHAIN, ANTHROPIC, BEDROCK],
    ids=["Responses", "objects of Responses", "Chat Completions", "functions", "LangChain", "Anthropic", "Bedrock"],
)
def test_every_step_of_a_conversation_is_read(said: list[Any]) -> None:
    messages = [message for message in turn_of(said).messages if message.parts]

    assert messages == [ASKED, CALLED, ANSWERED, SAID]


GEMINI = [
    {"role": "user", "parts": [{"text": ASK}]},
    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"functionCall": {"name": "tide", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "tide", "response": {"at": "16:20"}}}]},
    {"role": "model", "parts": [{"text": "At 16:20."}]},
]
GEMINI_OBJECTS = [
    gemini.Content(parts=[gemini.Part(text=ASK)]),
    gemini.Content(role="model", parts=[gemini.Part(function_call=gemini.FunctionCall(name="tide", args={}))]),
    gemini.Content(
        role="user",
        parts=[gemini.Part(function_response=gemini.FunctionResponse(name="tide", response={"at": "16:20"}))],
    ),
    gemini.Content(role="model", parts=[gemini.Part(text="At 16:20.")]),
]


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("said", [GEMINI, GEMINI_OBJECTS], ids=["contents", "objects"])
def test_contents_of_gemini_are_read_and_what_a_function_answers_is_not_the_users(said: list[Any]) -> None:
    answered = Message(role="tool", parts=(Part(kind="tool_result", text='{"at": "16:20"}', tool="tide"),))

    assert turn_of(said).messages == (ASKED, CALLED, answered, SAID)


ASK_OF_USER = {"role": "user", "content": ASK}
CALL_OF_CHAT = {"id": "c", "type": "function", "function": {"name": "tide", "arguments": "{}"}}
ASKED_FOR = {
    "Anthropic": {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "tide", "input": {}}]},
    "Bedrock": {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "tide", "input": {}}}]},
    "LangChain": AIMessage("", tool_calls=[{"name": "tide", "args": {}, "id": "c"}]),
    "LangChain's blocks": AIMessage("", tool_calls=[{"name": "tide", "args": {}, "id": "c"}]),
}
FAILED = {
    "Anthropic": {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": "no harbour"},
    "Bedrock": {"toolResult": {"toolUseId": "c", "status": "error", "content": [{"text": "no harbour"}]}},
    "LangChain": ToolMessage("no harbour", tool_call_id="c", status="error"),
    "LangChain's blocks": ToolMessage(["no harbour"], tool_call_id="c", status="error"),
}


@pytest.mark.parametrize("form", FAILED)
def test_a_call_that_failed_is_marked_and_is_no_answer_for_preconditions(form: str) -> None:
    answer = FAILED[form] if "LangChain" in form else {"role": "user", "content": [FAILED[form]]}

    messages = turn_of([ASK_OF_USER, ASKED_FOR[form], answer]).messages

    assert messages[-1].parts == (Part(kind="tool_result", text="no harbour", tool="tide", failed=True),)
    assert answered_names(messages) == frozenset()


def of_package(package: str, **fields: Any) -> object:
    """An object of a framework that is not installed here."""
    return type("Message", (SimpleNamespace,), {"__module__": package})(**fields)


FRAMEWORKS_ANSWERS = {
    "a retry of Pydantic AI": lambda _: of_package(
        "pydantic_ai", parts=[SimpleNamespace(part_kind="retry-prompt", content="no harbour", tool_name="tide")]
    ),
    "Pydantic AI": lambda failed: of_package(
        "pydantic_ai",
        parts=[
            SimpleNamespace(
                part_kind="tool-return",
                content="no harbour",
                tool_name="tide",
                outcome="failed" if failed else "success",
            )
        ],
    ),
    "AutoGen": lambda failed: of_package(
        "autogen_core", content=[SimpleNamespace(call_id="c", name="tide", content="no harbour", is_error=failed)]
    ),
    "Haystack": lambda failed: of_package(
        "haystack",
        tool_call_results=[
            SimpleNamespace(result="no harbour", origin=SimpleNamespace(tool_name="tide"), error=failed)
        ],
        texts=[],
        tool_calls=[],
    ),
}


@pytest.mark.parametrize("framework", FRAMEWORKS_ANSWERS)
def test_what_a_framework_marks_as_failed_is_marked(framework: str) -> None:
    answers = [turn_of([FRAMEWORKS_ANSWERS[framework](failed)]).messages[0].parts[0] for failed in (True, False)]

    assert answers[0] == Part(kind="tool_result", text="no harbour", tool="tide", failed=True)
    assert answers[1].failed is ("retry" in framework)


WITHOUT_TEXT = {
    "AutoGen": of_package("autogen_core", content=[SimpleNamespace(data=b"image")]),
    "Google ADK": of_package("google.adk", content=gemini.Content(parts=[gemini.Part(inline_data=gemini.Blob())])),
    "Google GenAI": gemini.Content(
        role="user", parts=[gemini.Part(inline_data=gemini.Blob(data=b"voice", mime_type="audio/wav"))]
    ),
    "Haystack": of_package("haystack", tool_call_results=[], texts=[], tool_calls=[]),
    "Microsoft Agent Framework": of_package("agent_framework", role="user", contents=[SimpleNamespace(type="data")]),
    "Pydantic AI": of_package("pydantic_ai", parts=[], instructions="Report the tide."),
}


@pytest.mark.parametrize("framework", WITHOUT_TEXT)
def test_every_tool_passes_where_a_conversation_has_no_text(framework: str) -> None:
    tools = [{"name": name, "description": name} for name in ("tide", "wind", "rain")]
    with Board(tools, k=1, profile="keyword") as board:
        for said in (WITHOUT_TEXT[framework], [WITHOUT_TEXT[framework]]):
            decision = board.route_now(said)
            assert (decision.query, len(decision.active)) == ("", len(tools))


@pytest.mark.parametrize("block", [{"type": "text", "text": "16:20"}, "16:20"], ids=["a block", "a text"])
def test_the_blocks_of_a_tools_message_are_the_answer_of_its_tool(block: Any) -> None:
    called = {"role": "assistant", "content": None, "tool_calls": [CALL_OF_CHAT]}
    said = [ASK_OF_USER, called, {"role": "tool", "tool_call_id": "c", "content": [block]}]

    assert turn_of(said).messages == (ASKED, CALLED, ANSWERED)
    assert answered_names(turn_of(said).messages) == {"tide"}


@pytest.mark.requirement("C4")
def test_items_that_say_nothing_of_a_turn_are_passed_over() -> None:
    search = ResponseFunctionWebSearch.model_validate(
        {"id": "w", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "tide"}}
    )

    assert turn_of([{"role": "user", "content": ASK}, search]).messages == (ASKED,)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "said",
    [
        None,
        7,
        [{"text": ASK}],
        [{"role": "user", "text": ASK}],
        [{"type": "utterance", "said": ASK}],
        [object()],
        [{"role": [1], "content": ASK}],
        [{"role": "user", "type": ["x"], "content": ASK}],
        [{"role": "user", "content": ASK, "tool_calls": 5}],
        [{"role": "assistant", "content": ASK, "tool_calls": ["x"]}],
        [{"role": "assistant", "content": None, "tool_calls": [{"function": "x"}]}],
        [{"role": "user", "content": [{"toolResult": {"content": ["x"]}}]}],
        [{"role": "user", "content": [{"toolResult": {"content": 5}}]}],
        gemini.Part(text=ASK),
        [of_package("pydantic_ai", content=ASK)],
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_what_can(said: Any) -> None:
    with pytest.raises(ConfigError, match=r"OpenAI \(Chat Completions, Responses\), Anthropic, Gemini .* LangChain"):
        turn_of(said)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("said", [RESPONSES, OLD_CHAT, ANTHROPIC, BEDROCK, GEMINI])
def test_values_of_other_kinds_are_read_or_refused_and_names_stay_texts(said: list[Any]) -> None:
    for other in spoilt(said):
        try:
            messages = turn_of(other).messages
        except ConfigError:
            continue
        answered_names(messages)
        assert all(isinstance(part.tool, str | None) for message in messages for part in message.parts)


def test_one_message_need_not_stand_in_a_list() -> None:
    assert turn_of({"role": "user", "content": ASK}).messages == (ASKED,)
