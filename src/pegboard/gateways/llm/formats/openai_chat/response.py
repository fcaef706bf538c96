"""Reads Chat Completions answers: one document, or its chunks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pegboard.gateways.llm.formats.protocol import AnswerStarted, Observation, ToolCalled
from pegboard.token_usage import TokenUsage


class _Function(msgspec.Struct):
    name: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    custom: _Function | None = None

    @property
    def name(self) -> str:
        of = self.function or self.custom
        return of.name or "" if of else ""


class _Said(msgspec.Struct):
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    message: _Said | None = None
    delta: _Said | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None

    @property
    def output(self) -> int:
        """Some providers (xAI, Gemini's endpoint in this format) count the tokens of thoughts in the total alone."""
        return max(self.completion_tokens or 0, (self.total_tokens or 0) - (self.prompt_tokens or 0))


class _Answer(msgspec.Struct):
    id: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None


ANSWER = msgspec.json.Decoder(_Answer)


class ChatAnswer:
    """Reads the chunks of one answer; each call is reported once, with the chunk that names it."""

    def __init__(self) -> None:
        self._started = False
        self._told: set[tuple[int, int | None, str]] = set()

    def __call__(self, data: bytes) -> Iterator[Observation]:
        if data == b"[DONE]":
            return
        answer = ANSWER.decode(data)
        if answer.id and not self._started:
            self._started = True
            yield AnswerStarted(id=answer.id)
        for choice in answer.choices or ():
            said = choice.delta or choice.message
            if said is not None:
                yield from self._calls(choice.index, said)
        if answer.usage is not None:
            details = answer.usage.prompt_tokens_details
            yield TokenUsage(
                input=answer.usage.prompt_tokens or 0,
                output=answer.usage.output,
                cache_read=(details.cached_tokens or 0) if details else 0,
                cache_write=(details.cache_write_tokens or 0) if details else 0,
            )

    def _calls(self, choice: int, said: _Said) -> Iterator[Observation]:
        calls = list(said.tool_calls or ())
        if said.function_call is not None:
            calls.append(_ToolCall(function=said.function_call))
        for call in calls:
            key = (choice, call.index, call.id or "")
            if call.name and key not in self._told and not self._is_more_of_one(call, key):
                self._told.add(key)
                yield ToolCalled(name=call.name, id=call.id or "")

    def _is_more_of_one(self, call: _ToolCall, key: tuple[int, int | None, str]) -> bool:
        """Whether the chunk continues a call: some servers repeat the name with every chunk of the arguments, without
        the id."""
        return not call.id and any(told[:2] == key[:2] for told in self._told)
