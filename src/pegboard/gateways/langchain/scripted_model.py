"""A chat model that follows a script, for tests, tutorials and benchmarks of agents: no network, no randomness."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedRequest:
    """A request as the model received it: messages, and tools in OpenAI's form."""

    messages: tuple[BaseMessage, ...]
    tools: tuple[Mapping[str, Any], ...]

    @property
    def names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.tools]


Step = AIMessage | str | Callable[[ScriptedRequest], AIMessage | str]


def calls(*wanted: tuple[str, Mapping[str, Any]]) -> AIMessage:
    """An answer that calls tools, each given by name and arguments.

    >>> calls(("tide", {"harbour": "Bergen"})).tool_calls[0]["name"]
    'tide'
    """
    return AIMessage("", tool_calls=[ToolCall(name=name, args=dict(args), id=None) for name, args in wanted])


class ScriptedModel(BaseChatModel):
    """Answers with one step after the other; a step may be a function of the request. ``asked`` keeps all requests.

    >>> ScriptedModel(steps=["hello"]).invoke("hi").content
    'hello'
    """

    steps: Iterable[Any]
    asked: list[ScriptedRequest] = Field(default_factory=list)
    _left: Any = PrivateAttr(default=None)
    _numbers: Any = PrivateAttr(default_factory=lambda: itertools.count(1))

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        asked = ScriptedRequest(messages=tuple(messages), tools=tuple(kwargs.get("tools") or ()))
        self.asked.append(asked)
        self._left = iter(self.steps) if self._left is None else self._left
        step = next(self._left)
        said = step(asked) if callable(step) else step
        message = AIMessage(said) if isinstance(said, str) else said
        numbered = [{**call, "id": call["id"] or f"call_{next(self._numbers)}"} for call in message.tool_calls]
        answer = message.model_copy(update={"tool_calls": numbered})
        return ChatResult(generations=[ChatGeneration(message=answer)])
