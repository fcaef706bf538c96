"""A model for coding agents: it plays a script of tool calls for one prompt, as far as it sees the tools.

Whatever else an agent asks beside it (a title, what to remember) it answers with a word. A tool that it was not given
it does not call: it looks for it where something was left to look with, and else says that it has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mock_providers.scripted import Calls, Says, Seen

DONE = "All of it is done."
OTHERWISE = "Very well."
MISSING = "I have no tool for that: "
SEARCH, CALL, HOSTED_SEARCH, CLIENT_SEARCH = "search_tools", "call_tool", "tool_search_tool_bm25", "tool_search"
MOST_SEARCHES = 3
HARNESS = ("<system-reminder", "<session_context", "<environment_context")


@dataclass
class CodingModel:
    """``steps`` are calls, one after the other, for the conversation in which the user says ``prompt``; ``missed`` the
    tools that it would have called and was not given."""

    prompt: str = ""
    steps: Sequence[Calls] = ()
    missed: list[str] = field(default_factory=list)

    def play(self, prompt: str, steps: Sequence[Mapping[str, Any]]) -> None:
        self.prompt, self.steps = prompt, [Calls(tool=step["tool"], arguments=step["arguments"]) for step in steps]
        self.missed.clear()

    def plays_in(self, body: Mapping[str, Any]) -> bool:
        """Whether a request is of the conversation that there is a script for."""
        return has_tools(body) and bool(self.prompt) and self.prompt in last_words(body)

    def __call__(self, seen: Seen) -> Says:
        if not self.plays_in(seen.body):
            return Says(text=OTHERWISE)
        calls = [place for place, name in enumerate(seen.answered, 1) if name != SEARCH]
        if len(calls) >= len(self.steps):
            return Says(text=DONE)
        searches = len(seen.answered) - (calls[-1] if calls else 0)
        return self._reach(self.steps[len(calls)], seen, searches)

    def _reach(self, step: Calls, seen: Seen, searches: int) -> Says:
        words = step.tool.replace("_", " ").replace(".", " ")
        if step.tool in seen.tools:
            return Says(calls=[step])
        if CALL in seen.tools:
            return Says(calls=[Calls(tool=CALL, arguments={"name": step.tool, "arguments": step.arguments})])
        if SEARCH in seen.tools and searches < MOST_SEARCHES:
            return Says(calls=[Calls(tool=SEARCH, arguments={"query": words})])
        if CLIENT_SEARCH in seen.tools:
            return Says(calls=[Calls(tool=CLIENT_SEARCH, arguments={"query": words})])
        if HOSTED_SEARCH in seen.tools:
            return Says(searches=words)
        self.missed.append(step.tool)
        return Says(text=MISSING + step.tool)


def has_tools(body: Mapping[str, Any]) -> bool:
    return bool(body.get("tools")) or any(said.get("type") == "additional_tools" for said in _messages(body))


def last_words(body: Mapping[str, Any]) -> str:
    """What the user's last message says that has words of its own, in whatever format."""
    said = ["\n".join(_texts(message)) for message in _messages(body) if message.get("role") == "user"]
    return next((words for words in reversed(said) if words), "")


def _messages(body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    said = body.get("messages") or body.get("contents") or body.get("input")
    return said if isinstance(said, list) else []


def _texts(message: Mapping[str, Any]) -> Iterator[str]:
    """None where a tool's result stands beside them: then it is the harness that speaks."""
    content = message.get("content", message.get("parts"))
    parts = [{"text": content}] if isinstance(content, str) else content or ()
    if any(part.get("type") == "tool_result" for part in parts):
        return
    texts = (str(part.get("text", "")) for part in parts)
    yield from (text for text in texts if text and not text.startswith(HARNESS))
