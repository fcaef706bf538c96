"""Tool messages with their results in fewer tokens: those that a tool answers now, never what a conversation holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from pegboard.library.board_results import BoardResults
from pegboard.model import Result, ToolId

Answer = ToolMessage | Command[Any]


def conversation_of(config: Mapping[str, Any] | None) -> str | None:
    """Whose conversation a call is part of: the thread, and the user whom LangGraph's server signed in; None without a
    thread.

    >>> conversation_of({"configurable": {"thread_id": "7"}}), conversation_of({})
    ("['7', None]", None)
    """
    said = (config or {}).get("configurable") or {}
    thread = said.get("thread_id")
    return None if thread is None else str([str(thread), said.get("langgraph_auth_user_id")])


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedMessages:
    """Shapes the answers of one call: of ``tool``, in the conversation of ``config``, for what was ``asked``; not if
    they should stay ``whole``."""

    results: BoardResults
    tool: ToolId
    config: Mapping[str, Any] | None
    whole: bool = False
    asked: str = ""

    def of(self, answer: Answer) -> Answer:
        """The answer with its result as the model should get it."""
        said = {
            at: self.results.shaped_now(given, session=conversation_of(self.config), asked=self.asked)
            for at, given in self._given(answer).items()
        }
        return _with(answer, said)

    async def aof(self, answer: Answer) -> Answer:
        """The async version of `of`."""
        said = {
            at: await self.results.shaped(given, session=conversation_of(self.config), asked=self.asked)
            for at, given in self._given(answer).items()
        }
        return _with(answer, said)

    def _given(self, answer: Answer) -> dict[int, Result]:
        """The results in an answer by the places of their messages."""
        if self.whole or not self.results.is_on:
            return {}
        return {
            at: Result(tool=self.tool, content=_blocks(message.content))
            for at, message in enumerate(_messages(answer))
            if isinstance(message, ToolMessage) and message.status != "error"
        }


def _messages(answer: Answer) -> list[Any]:
    """The message of a tool, or those among which a tool's command has its own."""
    if isinstance(answer, ToolMessage):
        return [answer]
    update = answer.update
    found = update.get("messages") if isinstance(update, Mapping) else None
    return list(found) if isinstance(found, list | tuple) else []


def _blocks(content: str | list[Any]) -> tuple[Any, ...]:
    blocks = [content] if isinstance(content, str) else content
    return tuple({"type": "text", "text": each} if isinstance(each, str) else each for each in blocks)


def _with(answer: Answer, said: Mapping[int, Result]) -> Answer:
    """The answer with those messages replaced whose result is another now."""
    messages = _messages(answer)
    changed = {
        at: messages[at].model_copy(update={"content": _content(messages[at].content, result)})
        for at, result in said.items()
        if result.content != _blocks(messages[at].content)
    }
    if not changed:
        return answer
    messages = [changed.get(at, message) for at, message in enumerate(messages)]
    if isinstance(answer, ToolMessage):
        return messages[0]  # type: ignore[no-any-return]
    update: Any = answer.update
    return replace(answer, update={**update, "messages": messages})


def _content(before: str | list[Any], result: Result) -> str | list[Any]:
    return result.text if isinstance(before, str) else [*result.content]
