"""Conversations as agents keep them: plain JSON, and the objects of SDKs."""

from __future__ import annotations

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


@pytest.mark.requirement("C4")
def test_items_that_say_nothing_of_a_turn_are_passed_over() -> None:
    search = ResponseFunctionWebSearch.model_validate(
        {"id": "w", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "tide"}}
    )

    assert turn_of([{"role": "user", "content": ASK}, search]).messages == (ASKED,)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize(
    "said",
    [None, 7, [{"text": ASK}], [{"role": "user", "text": ASK}], [{"type": "utterance", "said": ASK}], [object()]],
)
def test_what_cannot_be_read_is_an_error_that_says_what_can(said: Any) -> None:
    with pytest.raises(ConfigError, match=r"OpenAI \(Chat Completions, Responses\), Anthropic, Gemini .* LangChain"):
        turn_of(said)


def test_one_message_need_not_stand_in_a_list() -> None:
    assert turn_of({"role": "user", "content": ASK}).messages == (ASKED,)
